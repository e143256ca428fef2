import java.io.File;
import java.io.RandomAccessFile;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.MapFile;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.io.WritableComparable;
import org.apache.hadoop.mapreduce.lib.output.MapFileOutputFormat;
import org.apache.hadoop.mapreduce.lib.partition.HashPartitioner;
import org.apache.hadoop.util.ReflectionUtils;

/** Reads with real Hadoop and Nutch classes what Trawl wrote, and prints it in the shape that Trawl prints. */
public class Peer {
  static final Configuration conf = new Configuration();

  public static void main(String[] args) throws Exception {
    conf.setClass("fs.file.impl", org.apache.hadoop.fs.LocalFileSystem.class, org.apache.hadoop.fs.FileSystem.class);
    switch (args[0]) {
      case "files": for (File f : sorted(new File(args[1]))) if (f.getName().endsWith(".seq")) file(f); break;
      case "maps": for (File f : sorted(new File(args[1]))) map(f); break;
      case "flip": flip(new File(args[1])); break;
      case "dump": dump(new File(args[1])); break;
      case "get": get(args[1], args[2]); break;
      default: throw new IllegalArgumentException(args[0]);
    }
  }

  static File[] sorted(File dir) {
    File[] files = dir.listFiles((d, name) -> !name.startsWith(".") && !name.startsWith("_"));
    Arrays.sort(files);
    return files;
  }

  static Path path(File f) {
    return new Path(f.toURI());
  }

  /** Every record of a SequenceFile, by the classes that its header names. */
  static void file(File f) throws Exception {
    try (SequenceFile.Reader in = new SequenceFile.Reader(conf, SequenceFile.Reader.file(path(f)))) {
      Writable key = (Writable) ReflectionUtils.newInstance(in.getKeyClass(), conf);
      Writable value = (Writable) ReflectionUtils.newInstance(in.getValueClass(), conf);
      int n = 0;
      while (in.next(key, value)) System.out.println(f.getName() + "\t" + (n++) + "\t" + key + "\t" + value);
    }
    // A split from every tenth of the file: each record once.
    long size = f.length();
    List<String> all = new ArrayList<>();
    for (long start = 0; start < size; start += size / 10 + 1) {
      long end = start + size / 10 + 1;
      try (SequenceFile.Reader in = new SequenceFile.Reader(conf, SequenceFile.Reader.file(path(f)))) {
        Writable key = (Writable) ReflectionUtils.newInstance(in.getKeyClass(), conf);
        Writable value = (Writable) ReflectionUtils.newInstance(in.getValueClass(), conf);
        if (start > in.getPosition()) in.sync(start);
        boolean more = start < end;
        while (more) {
          long before = in.getPosition();
          more = in.next(key);
          if (more && before >= end && in.syncSeen()) more = false;
          // Values too, as a record reader does: without them the position stays before the end of a block.
          if (more) in.getCurrentValue(value);
          if (more) all.add(key.toString());
        }
      }
    }
    System.out.println(f.getName() + "\tsplits\t" + all.size() + "\t" + all.hashCode());
  }

  /** Lookups in a MapFile: keys that are there, between, before and behind. */
  static void map(File dir) throws Exception {
    try (MapFile.Reader in = new MapFile.Reader(path(dir), conf)) {
      Writable value = (Writable) ReflectionUtils.newInstance(in.getValueClass(), conf);
      for (int n = -1; n <= 2000; n += 7) {
        for (String key : new String[] {String.format("key-%06d", n), String.format("key-%06dx", n)}) {
          Writable got = in.get(new Text(key), value);
          System.out.println(dir.getName() + "\tget\t" + key + "\t" + got);
          WritableComparable<?> closest = in.getClosest(new Text(key), value);
          System.out.println(dir.getName() + "\tclosest\t" + key + "\t" + closest);
        }
      }
      System.out.println(dir.getName() + "\tmid\t" + in.midKey());
    }
  }

  /** With one flipped bit anywhere in the data, Hadoop's checksum file system must refuse to read. */
  static void flip(File f) throws Exception {
    int refused = 0, tried = 0;
    for (long at = 0; at < f.length(); at += f.length() / 20 + 1, tried++) {
      flipByte(f, at);
      try (SequenceFile.Reader in = new SequenceFile.Reader(conf, SequenceFile.Reader.file(path(f)))) {
        Writable key = (Writable) ReflectionUtils.newInstance(in.getKeyClass(), conf);
        Writable value = (Writable) ReflectionUtils.newInstance(in.getValueClass(), conf);
        while (in.next(key, value)) {}
      } catch (ChecksumException e) {
        refused++;
      }
      flipByte(f, at);
    }
    System.out.println(f.getName() + "\trefused\t" + refused + " of " + tried);
  }

  static void flipByte(File f, long at) throws Exception {
    try (RandomAccessFile file = new RandomAccessFile(f, "rw")) {
      file.seek(at);
      int b = file.read();
      file.seek(at);
      file.write(b ^ 1);
    }
  }

  /** All records of a directory of MapFiles, each also looked up in the part that HashPartitioner names. */
  static void dump(File dir) throws Exception {
    MapFile.Reader[] readers = MapFileOutputFormat.getReaders(path(dir), conf);
    for (File part : sorted(dir)) {
      try (MapFile.Reader in = new MapFile.Reader(path(part), conf)) {
        Text key = new Text();
        Writable value = (Writable) ReflectionUtils.newInstance(in.getValueClass(), conf);
        Writable found = (Writable) ReflectionUtils.newInstance(in.getValueClass(), conf);
        while (in.next(key, value)) {
          if (MapFileOutputFormat.getEntry(readers, new HashPartitioner<Text, Writable>(), key, found) == null)
            throw new AssertionError(key + " is not in the part of its hash");
          if (!found.toString().equals(value.toString())) throw new AssertionError(key + " is not what was looked up");
          System.out.println(key + "\t" + value);
        }
      }
    }
  }

  /** One URL of a segment, as readseg -get prints it. */
  static void get(String segment, String url) throws Exception {
    String[][] parts = {{"content", "Content"}, {"crawl_generate", "Crawl Generate"}, {"crawl_fetch", "Crawl Fetch"},
        {"crawl_parse", "Crawl Parse"}, {"parse_data", "ParseData"}, {"parse_text", "ParseText"}};
    for (String[] part : parts) {
      File dir = new File(segment, part[0]);
      if (!dir.exists()) continue;
      for (File f : sorted(dir)) {
        Path data = f.isDirectory() ? path(new File(f, "data")) : path(f);
        try (SequenceFile.Reader in = new SequenceFile.Reader(conf, SequenceFile.Reader.file(data))) {
          Text key = new Text();
          Writable value = (Writable) ReflectionUtils.newInstance(in.getValueClass(), conf);
          while (in.next(key, value)) {
            if (key.toString().equals(url)) System.out.println(part[1] + "::\n" + value);
          }
        }
      }
    }
  }
}
