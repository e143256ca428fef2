#!/usr/bin/env bash
# Real Hadoop and Nutch classes read what Trawl writes: SequenceFiles in each mode, MapFiles, .crc files through Hadoop's
# checksum file system, a CrawlDb, a LinkDb and a segment.
# Not here: ZStandardCodec, whose Java class works only with Hadoop's native library.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
command -v javac >/dev/null && command -v mvn >/dev/null || { echo "wants a JDK and Maven" >&2; exit 1; }

# Jars and the compiled reader, kept outside the clone and made anew when their sources change.
key=$(cat "$here/hadoop/pom.xml" "$here/hadoop/Peer.java" | cksum | cut -d' ' -f1)
peer="${XDG_CACHE_HOME:-$HOME/.cache}/trawl-ci/hadoop-$key"
if [ ! -e "$peer/ready" ]; then
  rm -rf "$peer"
  mkdir -p "$peer"
  mvn -q -B -f "$here/hadoop/pom.xml" dependency:copy-dependencies -DoutputDirectory="$peer/jars"
  javac -nowarn -cp "$peer/jars/*" -d "$peer/classes" "$here/hadoop/Peer.java"
  touch "$peer/ready"
fi
java_peer() { java -XX:TieredStopAtLevel=1 -Duser.timezone=UTC -Dfile.encoding=UTF-8 -Dstdout.encoding=UTF-8 -cp "$peer/classes:$peer/jars/*" Peer "$@"; }

fixtures="$root/crates/formats/nutch/tests/fixtures"
# With the features and the profile of the tests, which have compiled it before: a build of this crate alone would compile
# every third-party crate anew.
(cd "$root" && cargo build --quiet --locked --workspace --example interop)
"${CARGO_TARGET_DIR:-$root/target}/debug/examples/interop" "$fixtures" "$PWD"

java_peer files files > files.java
diff files.txt files.java
echo "SequenceFiles: $(find files -name '*.seq' | wc -l) files, $(wc -l < files.java) lines alike"
java_peer maps maps > maps.java
diff maps.txt maps.java
echo "MapFiles: $(wc -l < maps.java) lookups alike"
for file in files/none.seq files/block-DefaultCodec.seq files/record-GzipCodec.seq; do
  said=$(java_peer flip "$file")
  echo "$said"
  [[ "$said" == *$'\t20 of 20' ]] || { echo "a flipped bit was read" >&2; exit 1; }
done
# A segment that went through WARC and back, in both compressions, is Nutch's again.
# Metadata come in the order of a hash table of Java's, so words are compared and not their order.
words() { tr ' \t' '\n\n' | grep . | sort; }
"$TRAWL" -q convert "$fixtures/crawl-e2e/segments/20261115074416" pages.warc.gz || [ $? = 1 ]
for compress in nutch block; do
  "$TRAWL" -q convert pages.warc.gz "$compress.segment" --compress "$compress" || [ $? = 1 ]
  for url in http://host0.example/page2.html http://host3.example/page22.html; do
    java_peer get "$compress.segment" "$url" > get.java
    [ -s get.java ] || { echo "$url is not in the converted segment" >&2; exit 1; }
    diff <("$TRAWL" nutch readseg -get "$compress.segment" "$url" | words) <(words < get.java)
  done
done
echo "segments made by convert: alike"
for compress in nutch block; do
  java_peer dump "$compress/crawldb/current" > crawldb.java
  diff <("$TRAWL" nutch readdb "$compress/crawldb" -dump) crawldb.java
  java_peer dump "$compress/linkdb/current" > linkdb.java
  diff <("$TRAWL" nutch readlinkdb "$compress/linkdb" -dump | sort) <(sort linkdb.java)
  segment="$compress/segments/20300101000000"
  for url in http://host0.example/page2.html http://host1.example/page7.html?q=segment; do
    java_peer get "$segment" "$url" > get.java
    [ -s get.java ] || { echo "$url is not in the segment" >&2; exit 1; }
    diff <("$TRAWL" nutch readseg -get "$segment" "$url") get.java
  done
  echo "$compress: CrawlDb $(grep -c '^http' crawldb.java) URLs, LinkDb $(grep -c Inlinks: linkdb.java) pages, segment alike"
done
