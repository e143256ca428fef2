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
    Srcset,
    Type,
    XlinkHref,
}

impl Attr {
    /// How many there are.
    pub(super) const COUNT: usize = 17;

    /// This attribute's bit in a set.
    pub(super) const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// The attribute of a packed name.
    pub(super) fn parse(name: u128) -> Option<Attr> {
        const NAMES: [(u128, Attr); Attr::COUNT] = [
            (pack(b"href"), Attr::Href),
            (pack(b"src"), Attr::Src),
            (pack(b"rel"), Attr::Rel),
            (pack(b"type"), Attr::Type),
            (pack(b"content"), Attr::Content),
            (pack(b"name"), Attr::Name),
            (pack(b"srcset"), Attr::Srcset),
            (pack(b"charset"), Attr::Charset),
            (pack(b"http-equiv"), Attr::HttpEquiv),
            (pack(b"action"), Attr::Action),
            (pack(b"formaction"), Attr::FormAction),
            (pack(b"data"), Attr::Data),
            (pack(b"poster"), Attr::Poster),
            (pack(b"imagesrcset"), Attr::ImageSrcset),
            (pack(b"xlink:href"), Attr::XlinkHref),
            (pack(b"background"), Attr::Background),
            (pack(b"shadowrootmode"), Attr::ShadowRoot),
        ];
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, attr)| *attr)
    }
}
