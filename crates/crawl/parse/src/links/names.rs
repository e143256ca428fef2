//! Names of tags and attributes, packed into one integer so that comparing them costs one instruction.

/// Packs a lower-case name of at most 15 bytes. Longer names keep their last 16 bytes, so that the top byte is set
/// and no known name can equal them.
pub(super) const fn pack(name: &[u8]) -> u128 {
    let mut packed = 0;
    let mut rest = name;
    while let [byte, tail @ ..] = rest {
        packed = push(packed, *byte);
        rest = tail;
    }
    packed
}

/// Appends one byte of a name, lower-cased. NUL becomes another byte no name has, since zero means "no byte".
pub(super) const fn push(packed: u128, byte: u8) -> u128 {
    let byte = if byte == 0 { 0xFF } else { byte.to_ascii_lowercase() };
    packed << 8 | byte as u128
}

macro_rules! names {
    ($($name:ident = $text:literal;)*) => { $(pub(in crate::links) const $name: u128 = pack($text);)* };
}

/// Packed tag names.
pub(super) mod tag {
    use super::pack;
    names! {
        A = b"a"; AREA = b"area"; AUDIO = b"audio"; BASE = b"base"; BODY = b"body";
        BUTTON = b"button"; EMBED = b"embed"; FORM = b"form"; FRAME = b"frame"; IFRAME = b"iframe"; IMAGE = b"image";
        IMG = b"img"; INPUT = b"input"; LINK = b"link"; MATH = b"math"; META = b"meta"; NOEMBED = b"noembed";
        NOFRAMES = b"noframes"; OBJECT = b"object"; PLAINTEXT = b"plaintext"; SCRIPT = b"script"; SOURCE = b"source";
        STYLE = b"style"; SVG = b"svg"; TABLE = b"table"; TD = b"td"; TEMPLATE = b"template"; TEXTAREA = b"textarea";
        TH = b"th"; TITLE = b"title"; TRACK = b"track"; VIDEO = b"video"; XMP = b"xmp";
        FOREIGN_OBJECT = b"foreignobject"; DESC = b"desc"; MI = b"mi"; MO = b"mo"; MN = b"mn"; MS = b"ms";
        MTEXT = b"mtext"; ANNOTATION_XML = b"annotation-xml";
    }

    /// HTML tags that end foreign content when they start inside it.
    pub(in crate::links) const BREAKOUT: [u128; 44] = [
        pack(b"b"),
        pack(b"big"),
        pack(b"blockquote"),
        BODY,
        pack(b"br"),
        pack(b"center"),
        pack(b"code"),
        pack(b"dd"),
        pack(b"div"),
        pack(b"dl"),
        pack(b"dt"),
        pack(b"em"),
        EMBED,
        pack(b"h1"),
        pack(b"h2"),
        pack(b"h3"),
        pack(b"h4"),
        pack(b"h5"),
        pack(b"h6"),
        pack(b"head"),
        pack(b"hr"),
        pack(b"i"),
        IMG,
        pack(b"li"),
        pack(b"listing"),
        pack(b"menu"),
        META,
        pack(b"nobr"),
        pack(b"ol"),
        pack(b"p"),
        pack(b"pre"),
        pack(b"ruby"),
        pack(b"s"),
        pack(b"small"),
        pack(b"span"),
        pack(b"strong"),
        pack(b"strike"),
        pack(b"sub"),
        pack(b"sup"),
        TABLE,
        pack(b"tt"),
        pack(b"u"),
        pack(b"ul"),
        pack(b"var"),
    ];
}

/// An element whose content is raw text.
pub(super) const RAW: u32 = 1 << 31;
/// `<plaintext>`, which never ends.
pub(super) const PLAINTEXT: u32 = 1 << 30;
/// An element that starts foreign content.
pub(super) const FOREIGN: u32 = 1 << 29;
/// The bits of [`traits`] that name attributes.
pub(super) const ATTRIBUTES: u32 = (1 << Attr::COUNT) - 1;

/// What matters about a tag: the attributes it is read for, and the bits above. Zero for most.
pub(super) fn traits(name: u128) -> u32 {
    use Attr::{Action, Background, Charset, Content, Data, FormAction, Href, HttpEquiv, ImageSrcset, Name, Poster};
    use Attr::{Rel, ShadowRoot, Src, Srcdoc, Srcset, Type, XlinkHref};
    const fn set(attrs: &[Attr]) -> u32 {
        let mut bits = 0;
        let mut rest = attrs;
        while let [attr, tail @ ..] = rest {
            bits |= attr.bit();
            rest = tail;
        }
        bits
    }
    match name {
        tag::A | tag::AREA => const { set(&[Href, Rel, XlinkHref]) },
        tag::IMG | tag::IMAGE => const { set(&[Src, Srcset, Href, XlinkHref]) },
        tag::LINK => const { set(&[Href, Rel, Type, ImageSrcset]) },
        tag::SCRIPT => const { set(&[Src]) | RAW },
        tag::IFRAME => const { set(&[Src, Srcdoc]) | RAW },
        tag::FRAME | tag::TRACK | tag::EMBED | tag::AUDIO => const { set(&[Src]) },
        tag::META => const { set(&[Name, HttpEquiv, Content, Charset]) },
        tag::SOURCE => const { set(&[Src, Srcset]) },
        tag::VIDEO => const { set(&[Src, Poster]) },
        tag::OBJECT => const { set(&[Data]) },
        tag::FORM => const { set(&[Action, Rel]) },
        tag::BUTTON => const { set(&[FormAction]) },
        tag::INPUT => const { set(&[Src, Type, FormAction]) },
        tag::BASE => const { set(&[Href]) },
        tag::BODY | tag::TABLE | tag::TD | tag::TH => const { set(&[Background]) },
        tag::TEMPLATE => const { set(&[ShadowRoot]) },
        tag::STYLE | tag::TEXTAREA | tag::TITLE | tag::XMP | tag::NOEMBED | tag::NOFRAMES => RAW,
        tag::SVG | tag::MATH => FOREIGN,
        tag::PLAINTEXT => PLAINTEXT,
        _ => 0,
    }
}

/// An attribute that some tag is read for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Attr {
    Action,
    Background,
    Charset,
    Content,
    Data,
    FormAction,
    Href,
    HttpEquiv,
    ImageSrcset,
    Name,
    Poster,
    Rel,
    ShadowRoot,
    Src,
    Srcdoc,
    Srcset,
    Type,
    XlinkHref,
}

impl Attr {
    /// How many there are.
    pub(super) const COUNT: usize = 18;

    /// This attribute's bit in a set.
    pub(super) const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// The attribute of a packed name.
    pub(super) fn parse(name: u128) -> Option<Attr> {
        names! {
            ACTION = b"action"; BACKGROUND = b"background"; CHARSET = b"charset"; CONTENT = b"content"; DATA = b"data";
            FORM_ACTION = b"formaction"; HREF = b"href"; HTTP_EQUIV = b"http-equiv"; IMAGE_SRCSET = b"imagesrcset";
            NAME = b"name"; POSTER = b"poster"; REL = b"rel"; SHADOW_ROOT = b"shadowrootmode"; SRC = b"src";
            SRCDOC = b"srcdoc"; SRCSET = b"srcset"; TYPE = b"type"; XLINK_HREF = b"xlink:href";
        }
        Some(match name {
            ACTION => Attr::Action,
            BACKGROUND => Attr::Background,
            CHARSET => Attr::Charset,
            CONTENT => Attr::Content,
            DATA => Attr::Data,
            FORM_ACTION => Attr::FormAction,
            HREF => Attr::Href,
            HTTP_EQUIV => Attr::HttpEquiv,
            IMAGE_SRCSET => Attr::ImageSrcset,
            NAME => Attr::Name,
            POSTER => Attr::Poster,
            REL => Attr::Rel,
            SHADOW_ROOT => Attr::ShadowRoot,
            SRC => Attr::Src,
            SRCDOC => Attr::Srcdoc,
            SRCSET => Attr::Srcset,
            TYPE => Attr::Type,
            XLINK_HREF => Attr::XlinkHref,
            _ => return None,
        })
    }
}
