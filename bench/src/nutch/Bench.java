import java.io.BufferedReader;
import java.io.File;
import java.io.FileReader;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.MapFile;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.compress.DefaultCodec;
import org.apache.nutch.crawl.CrawlDatum;

/** The same work as the Rust side, by real Hadoop and Nutch classes. Prints task, CPU seconds of each round, and a sum. */
public class Bench {
  static final Configuration conf = new Configuration();
  static final int ROUNDS = 5;

  interface Task {
    long run() throws Exception;
  }

  static void measure(String name, Task task) throws Exception {
    StringBuilder line = new StringBuilder(name);
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
      long before = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
      sum = task.run();
      long after = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
      line.append('\t').append((after - before) / 1e9);
    }
    System.out.println(line + "\t" + sum);
    System.out.flush();
  }

  public static void main(String[] args) throws Exception {
    String dir = args[0];
    for (String pack : new String[] {"none", "block"}) {
      Path data = new Path(new File(dir, pack + "/data").toURI());
      measure("scan-" + pack, () -> {
        long sum = 0;
        try (SequenceFile.Reader in = new SequenceFile.Reader(conf, SequenceFile.Reader.file(data))) {
          Text key = new Text();
          CrawlDatum value = new CrawlDatum();
          while (in.next(key, value)) sum += value.getFetchTime() + key.getLength() + value.getMetaData().size();
        }
        return sum;
      });
    }
    List<Text> wanted = new ArrayList<>();
    try (BufferedReader in = new BufferedReader(new FileReader(new File(dir, "keys.txt")))) {
      for (String line; (line = in.readLine()) != null;) wanted.add(new Text(line));
    }
    for (String pack : new String[] {"none", "record"}) {
      try (MapFile.Reader map = new MapFile.Reader(new Path(new File(dir, pack).toURI()), conf)) {
        measure("get-" + pack, () -> {
          long sum = 0;
          CrawlDatum value = new CrawlDatum();
          for (Text key : wanted) {
            if (map.get(key, value) != null) sum += value.getFetchTime();
          }
          return sum;
        });
      }
    }
    List<Text> keys = new ArrayList<>();
    List<CrawlDatum> values = new ArrayList<>();
    int limit = Integer.parseInt(args[1]);
    try (SequenceFile.Reader in = new SequenceFile.Reader(conf, SequenceFile.Reader.file(new Path(new File(dir, "none/data").toURI())))) {
      while (keys.size() < limit) {
        Text key = new Text();
        CrawlDatum value = new CrawlDatum();
        if (!in.next(key, value)) break;
        keys.add(key);
        values.add(value);
      }
    }
    write(dir, "write-none", SequenceFile.CompressionType.NONE, keys, values);
    write(dir, "write-record", SequenceFile.CompressionType.RECORD, keys, values);
    write(dir, "write-block", SequenceFile.CompressionType.BLOCK, keys, values);
  }

  static void write(String dir, String name, SequenceFile.CompressionType type, List<Text> keys, List<CrawlDatum> values)
      throws Exception {
    File file = new File(dir, name + ".java");
    DefaultCodec codec = new DefaultCodec();
    codec.setConf(conf);
    measure(name, () -> {
      try (SequenceFile.Writer out = SequenceFile.createWriter(conf, SequenceFile.Writer.file(new Path(file.toURI())),
          SequenceFile.Writer.keyClass(Text.class), SequenceFile.Writer.valueClass(CrawlDatum.class),
          SequenceFile.Writer.compression(type, codec))) {
        for (int i = 0; i < keys.size(); i++) out.append(keys.get(i), values.get(i));
      }
      return file.length();
    });
  }
}
