//! `scoring.webgraph`: edges and nodes of the web graph.

use super::Metadata;
use trawl_hadoop::{Decoded, Decoder, Encode, Text};

/// An edge.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkDatum<'a> {
    /// The other end.
    pub url: Text<'a>,
    /// What the link says.
    pub anchor: Text<'a>,
    /// Weight.
    pub score: f32,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    /// 1 an inlink, 2 an outlink.
    pub link_type: u8,
}

impl<'a> LinkDatum<'a> {
    /// Reads an edge.
    pub fn decode(d: &mut Decoder<'a>) -> Decoded<Self> {
        Ok(LinkDatum {
            url: d.text("URL")?,
            anchor: d.text("anchor")?,
            score: d.f32("score")?,
            timestamp: d.i64("timestamp")?,
            link_type: d.u8("type of the link")?,
        })
    }

    /// Writes an edge.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_text(self.url.as_bytes());
        out.put_text(self.anchor.as_bytes());
        out.put_f32(self.score);
        out.put_i64(self.timestamp);
        out.put_u8(self.link_type);
    }
}

/// A node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Node<'a> {
    /// Links to it.
    pub num_inlinks: i32,
    /// Links from it.
    pub num_outlinks: i32,
    /// Score by its inlinks.
    pub inlink_score: f32,
    /// Anything else.
    pub metadata: Metadata<'a>,
}

impl<'a> Node<'a> {
    /// Reads a node.
    pub fn decode(d: &mut Decoder<'a>) -> Decoded<Self> {
        Ok(Node {
            num_inlinks: d.i32("number of inlinks")?,
            num_outlinks: d.i32("number of outlinks")?,
            inlink_score: d.f32("inlink score")?,
            metadata: Metadata::decode(d, Default::default())?,
        })
    }

    /// Writes a node.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_i32(self.num_inlinks);
        out.put_i32(self.num_outlinks);
        out.put_f32(self.inlink_score);
        self.metadata.encode(out);
    }
}

/// A node with its URL: `LinkDumper$LinkNode`.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkNode<'a> {
    /// The URL.
    pub url: Text<'a>,
    /// Its node.
    pub node: Node<'a>,
}

impl<'a> LinkNode<'a> {
    /// Reads a node with its URL, which is in Java's own string form.
    pub fn decode(d: &mut Decoder<'a>) -> Decoded<Self> {
        Ok(LinkNode { url: d.utf8("URL")?, node: Node::decode(d)? })
    }

    /// Reads `LinkDumper$LinkNodes`, which is no byte at all when there are none.
    pub fn decode_list(d: &mut Decoder<'a>) -> Decoded<Vec<Self>> {
        if d.rest().is_empty() {
            return Ok(Vec::new());
        }
        let count = d.count(18, "number of nodes")?;
        (0..count).map(|_| Self::decode(d)).collect()
    }

    /// Writes a node with its URL.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_java_utf(self.url.as_bytes());
        self.node.encode(out);
    }

    /// Writes `LinkDumper$LinkNodes`.
    pub fn encode_list(list: &[Self], out: &mut Vec<u8>) {
        if !list.is_empty() {
            out.put_len(list.len());
            for node in list {
                node.encode(out);
            }
        }
    }
}
