//! Unit tests of link extraction; the corpus with known answers is in `tests/links.rs`.

use super::*;
use crate::directives::Directives;

const BASE: &str = "http://h.example/dir/page";

fn page(html: &[u8]) -> Page {
    let options = Options { forms: true, agent: Some("TrawlBot".into()), ..Options::default() };
    links(html, BASE, None, &options)
}

/// The links as `Kind path`, with the origin cut off.
fn found(html: &str) -> Vec<String> {
    let show = |link: &Link| {
        let url = link.url.strip_prefix("http://h.example").unwrap_or(&link.url);
        format!("{:?} {url}", link.kind)
    };
    page(html.as_bytes()).links.iter().map(show).collect()
}

#[track_caller]
fn check(cases: &[(&str, &[&str])]) {
    for (html, want) in cases {
        assert_eq!(found(html), *want, "{html}");
    }
}

#[test]
fn attributes_in_every_dress() {
    check(&[
        ("<a href=x>", &["Anchor /dir/x"]),
        ("<A HREF='x'>", &["Anchor /dir/x"]),
        ("<a\nhref\t=\n\"x\"\n>", &["Anchor /dir/x"]),
        ("<a/href=x>", &["Anchor /dir/x"]),
        ("<a href=x/>", &["Anchor /dir/x/"]),
        ("<a href=x />", &["Anchor /dir/x"]),
        ("<a title='>' href=x>", &["Anchor /dir/x"]),
        ("<a title=a\"b href=x>", &["Anchor /dir/x"]),
        ("<a =\"href=y>\" href=x>", &[]),
        ("<a href=x href=y>", &["Anchor /dir/x"]),
        ("<a href>", &[]),
        ("<a href=>", &[]),
        ("<a href= >x</a><a href=y>", &["Anchor /dir/y"]),
        ("<a href=\"x\"rel=nofollow>", &["Anchor /dir/x"]),
        ("<a hreff=x xhref=y data-href=z>", &[]),
        ("<ab href=x>", &[]),
        ("<a href=\"x", &[]),
        ("<a href=x", &[]),
    ]);
}

#[test]
fn blanks_and_references_in_urls() {
    check(&[
        ("<a href=' \n x \t'>", &["Anchor /dir/x"]),
        ("<a href='x\ny\tz\r\nw'>", &["Anchor /dir/xyzw"]),
        ("<a href='a b'>", &["Anchor /dir/a%20b"]),
        ("<a href='?a=1&amp;b=2&copy=3&#38;c'>", &["Anchor /dir/page?a=1&b=2&copy=3&c"]),
        ("<a href='&#x2f;&#47;other.example&sol;x'>", &["Anchor http://other.example/x"]),
        ("<a href='//other.example\\x'>", &["Anchor http://other.example/x"]),
        ("<a href='x#y'><a href='#y'><a href=''>", &["Anchor /dir/x"]),
        ("<a href=javascript:x><a href='JavaScript:y'><a href=mailto:a@b><a href='ftp://x/'>", &[]),
        ("<a href='http://[bad'>", &[]),
    ]);
}

#[test]
fn raw_text_hides_tags() {
    check(&[
        ("<!-- <a href=x> --><a href=y>", &["Anchor /dir/y"]),
        ("<!--><a href=x>", &["Anchor /dir/x"]),
        ("<!---><a href=x>", &["Anchor /dir/x"]),
        ("<!-- --!><a href=x>", &["Anchor /dir/x"]),
        ("<!--!><a href=x>--><a href=y>", &["Anchor /dir/y"]),
        ("<!-- -- > <a href=x> -><a href=y>", &[]),
        ("<!doctype html \"<a href=x>\"><a href=y>", &["Anchor /dir/y"]),
        ("<?xml <a href=x>?><a href=y>", &["Anchor /dir/y"]),
        ("<script>'<a href=x>'</script><a href=y>", &["Anchor /dir/y"]),
        ("<script></ script></scripty><a href=x></SCRIPT\n a='>'><a href=y>", &["Anchor /dir/y"]),
        ("<script><!-- <script> </script> <a href=x> --></script><a href=y>", &["Anchor /dir/y"]),
        ("<script><!-- </script><a href=y>", &["Anchor /dir/y"]),
        ("<script><!-- <script> --> </script><a href=y>", &["Anchor /dir/y"]),
        ("<script><!--><script></script><a href=y>", &["Anchor /dir/y"]),
        ("<style><a href=x></style><a href=y>", &["Anchor /dir/y"]),
        ("<title><a href=x></title><textarea><a href=z></textarea><a href=y>", &["Anchor /dir/y"]),
        ("<xmp><a href=x></xmp><noembed><a href=x></noembed><noframes><a href=x></noframes>", &[]),
        ("<iframe src=f><a href=x></iframe>", &["Frame /dir/f"]),
        ("<plaintext><a href=x></plaintext><a href=y>", &[]),
        ("<noscript><img src=x></noscript>", &["Image /dir/x"]),
        ("a < b <a href=x> <3 </ > </a href=y>", &["Anchor /dir/x"]),
    ]);
}

#[test]
fn foreign_content() {
    check(&[
        ("<![CDATA[<a href=x>]]><a href=y>", &["Anchor /dir/y"]),
        ("<svg><![CDATA[<a href=x>]]></svg><a href=y>", &["Anchor /dir/y"]),
        ("<svg><![CDATA[ > <a href=x>]]></svg><a href=y>", &["Anchor /dir/y"]),
        ("<svg><p><![CDATA[ > <a href=x>]]>", &["Anchor /dir/x"]),
        ("<svg><a xlink:href=x><image href=i /></svg>", &["Anchor /dir/x", "Image /dir/i"]),
        ("<svg><title><a href=x></title></svg>", &["Anchor /dir/x"]),
        ("<svg><style><a href=x></style></svg>", &["Anchor /dir/x"]),
        ("<svg/><title><a href=x></title>", &[]),
        (
            "<svg><foreignObject><title><a href=x></title></foreignObject><style><a href=y></style></svg>",
            &["Anchor /dir/y"],
        ),
        ("<math><mi><style><a href=x></style></mi><style><a href=y></style></math>", &["Anchor /dir/y"]),
    ]);
}

#[test]
fn every_kind() {
    check(&[
        ("<map><area href=x></map>", &["Area /dir/x"]),
        ("<img src=a srcset='b 1x, c 2x'>", &["Image /dir/a", "Image /dir/b", "Image /dir/c"]),
        ("<picture><source srcset='a, b 2x'><img src=c></picture>", &["Image /dir/a", "Image /dir/b", "Image /dir/c"]),
        (
            "<video src=v poster=p><source src=s><track src=t></video><audio src=u>",
            &["Media /dir/v", "Image /dir/p", "Media /dir/s", "Media /dir/t", "Media /dir/u"],
        ),
        ("<link rel='shortcut icon' href=i><link rel=STYLESHEET href=s>", &["Icon /dir/i", "Stylesheet /dir/s"]),
        ("<link rel=alternate type='application/rss+xml; charset=utf-8' href=f>", &["Feed /dir/f"]),
        (
            "<link rel=alternate hreflang=de href=d><link rel='nofollow next' href=n>",
            &["Alternate /dir/d", "Next /dir/n"],
        ),
        ("<link rel=dns-prefetch href=//x><link href=x><link rel=license href=l>", &["Link /dir/l"]),
        ("<link rel=preload as=image href=p imagesrcset='q 2x'>", &["Resource /dir/p", "Resource /dir/q"]),
        (
            "<script src=s></script><object data=o></object><embed src=e>",
            &["Script /dir/s", "Object /dir/o", "Object /dir/e"],
        ),
        (
            "<form action=f><button formaction=g><input type=image src=i><input type=text src=j>",
            &["Form /dir/f", "Form /dir/g", "Image /dir/i"],
        ),
        ("<body background=b><td background=c>", &["Image /dir/b", "Image /dir/c"]),
    ]);
}

#[test]
fn rel_of_a_link() {
    let page = page(b"<a rel='UGC\nnoopener' href=x><a rel='nofollow sponsored' href=y><a href=z rel=nofollower>");
    let rels: Vec<_> = page.links.iter().map(|l| (l.rel.nofollow, l.rel.ugc, l.rel.sponsored)).collect();
    assert_eq!(rels, [(false, true, false), (true, false, true), (false, false, false)]);
}

#[test]
fn the_first_base_counts_for_all_links() {
    let html = b"<a href=a><base target=x><base href=/b/><base href=/c/><a href=d>";
    let page = page(html);
    assert_eq!(page.base, "http://h.example/b/");
    let urls: Vec<_> = page.links.iter().map(|link| link.url.as_str()).collect();
    assert_eq!(urls, ["http://h.example/b/a", "http://h.example/b/d"]);
    // A base that is no web URL is as good as none.
    for html in ["<base href=javascript:x><a href=a>", "<base href='http://[x'><a href=a>"] {
        assert_eq!(found(html), ["Anchor /dir/a"], "{html}");
    }
}

#[test]
fn meta_tags() {
    let page = page(
        b"<meta name=robots content='NOINDEX'><meta content=nofollow name=TRAWLBOT><meta name=otherbot content=none>
          <meta http-equiv=Refresh content=\"5; URL='/next?a&amp;b'\"><link rel=canonical href=/c#x>",
    );
    assert_eq!(page.directives, Directives { noindex: true, nofollow: true, ..Directives::default() });
    assert_eq!(page.canonical.as_deref(), Some("http://h.example/c"));
    let want = Refresh { delay_seconds: 5, url: trawl_url::WebUrl::parse("http://h.example/next?a&b").ok() };
    assert_eq!(page.refresh, Some(want));
}

#[test]
fn refresh_forms() {
    for (content, want) in [
        ("0;url=x", Some((0, "/dir/x"))),
        ("0;URL = 'x' y", Some((0, "/dir/x"))),
        (" 3.5 ; x", Some((3, "/dir/x"))),
        ("1,x", Some((1, "/dir/x"))),
        ("1 x", Some((1, "/dir/x"))),
        ("0; urls", Some((0, "/dir/urls"))),
        (".5;url=x", Some((0, "/dir/x"))),
        ("99999999999;url=x", Some((u32::MAX, "/dir/x"))),
        ("7", Some((7, ""))),
        ("x", None),
        ("", None),
        ("5x", None),
        ("0;url=javascript:x", Some((0, ""))),
    ] {
        let got = page(format!("<meta http-equiv=refresh content=\"{content}\">").as_bytes()).refresh;
        let got = got.map(|r| (r.delay_seconds, r.url.map(String::from).unwrap_or_default()));
        let want = want.map(|(delay, path)| {
            (delay, if path.is_empty() { String::new() } else { format!("http://h.example{path}") })
        });
        assert_eq!(got, want, "{content}");
    }
}

#[test]
fn templates_are_no_part_of_the_page() {
    let html = "<template><a href=x><template></template><a href=y></template><a href=z>";
    check(&[
        (html, &["Anchor /dir/z"]),
        ("<template shadowrootmode=open><a href=x></template>", &["Anchor /dir/x"]),
        ("</template><a href=x>", &["Anchor /dir/x"]),
        ("<svg><template><a href=x></template></svg><a href=y>", &["Anchor /dir/x", "Anchor /dir/y"]),
        ("<svg><template></svg><a href=y>", &["Anchor /dir/y"]),
        ("<math><template/></math><a href=y>", &["Anchor /dir/y"]),
        ("<svg><desc><template><a href=x></template></desc></svg><a href=y>", &["Anchor /dir/y"]),
        ("<template><svg></template><a href=y>", &["Anchor /dir/y"]),
    ]);
    let options = Options { templates: true, ..Options::default() };
    assert_eq!(links(html.as_bytes(), BASE, None, &options).links.len(), 3);
    let deep = format!("{}<a href=x>{}<a href=y>", "<template>".repeat(200), "</template>".repeat(200));
    assert_eq!(found(&deep), ["Anchor /dir/y"]);
}

#[test]
fn limits_hold() {
    let html = "<a href=x>".repeat(100);
    let few = Options { max_links: 7, ..Options::default() };
    let page = links(html.as_bytes(), BASE, None, &few);
    assert_eq!((page.links.len(), page.over_limit), (7, 93));

    let long = format!("<a href={}><a href=y>", "x".repeat(200));
    let short = Options { max_attribute_bytes: 100, ..Options::default() };
    let page = links(long.as_bytes(), BASE, None, &short);
    assert_eq!((page.links.len(), page.over_limit), (1, 1));

    let small = Options { max_total_bytes: 10, ..Options::default() };
    assert_eq!(links(html.as_bytes(), BASE, None, &small).links.len(), 10);

    // One attribute can hold many links.
    let srcset = format!("<img srcset='{}'>", "x 1x, ".repeat(100));
    assert_eq!(links(srcset.as_bytes(), BASE, None, &few).links.len(), 7);
}

#[test]
fn pieces_of_any_size_give_the_same_page() {
    let html = include_bytes!("../../tests/data/links/mixed.html");
    let whole = page(html);
    assert!(whole.links.len() > 20);
    for size in [1, 2, 3, 7, 64, 1000] {
        let options = Options { forms: true, agent: Some("TrawlBot".into()), ..Options::default() };
        let mut extractor = LinkExtractor::new(options, None);
        html.chunks(size).for_each(|piece| extractor.push(piece));
        assert_eq!(extractor.finish(BASE), whole, "pieces of {size}");
    }
}

#[test]
fn xhtml_is_xml_and_html_is_not() {
    let page = b"<html><script src='s.js'/><a href='1'/><title/><a href='2'/><style/><![CDATA[ <a href='no'> ]]><a href='3'/></html>";
    let found = |content_type: &str| -> Vec<String> {
        let options = Options { embeds: false, ..Options::default() };
        let page = links(page, "http://h.example/", Some(content_type), &options);
        page.links.into_iter().map(|link| link.url.path_query().to_owned()).collect()
    };
    assert_eq!(found("application/xhtml+xml; charset=utf-8"), ["/1", "/2", "/3"]);
    assert_eq!(found("Text/XML"), ["/1", "/2", "/3"]);
    assert_eq!(found("application/xml; charset=utf-8"), ["/1", "/2", "/3"]);
    // HTML knows no such thing: the script never ends.
    assert!(found("text/html").is_empty());
}

#[test]
fn a_page_in_xml_is_told_by_its_root() {
    for page in [
        "<html>",
        "\u{feff} <?xml version='1.0'?>\n<!-- <rss> --><!DOCTYPE html PUBLIC 'x' 'y'>\n<html xmlns='z'>",
        "<!DOCTYPE html [ <!ENTITY a '>'> ]><h:html/>",
    ] {
        assert!(root_is_html(page.as_bytes()), "{page}");
    }
    for other in
        ["", "<", "html", "<rss><html>", "<?xml version='1.0'?><feed>", "<!-- <html>", "<!DOCTYPE html>", "<htmlx>"]
    {
        assert!(!root_is_html(other.as_bytes()), "{other}");
    }
}

#[test]
fn a_document_in_an_attribute_has_links() {
    let page = b"<iframe srcdoc='&lt;a href=&quot;d?x=1&amp;amp;y=2&quot;&gt;&lt;iframe srcdoc=&quot;&amp;lt;a href=deep&amp;gt;&quot;&gt;'></iframe><a href=e>";
    let page = links(page, "http://h.example/p/", None, &Options::default());
    let found: Vec<_> = page.links.iter().map(|link| link.url.as_str()).collect();
    assert_eq!(found, ["http://h.example/p/d?x=1&y=2", "http://h.example/p/e"]);
}
