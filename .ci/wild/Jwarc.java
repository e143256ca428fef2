import java.io.InputStream;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;
import org.netpreserve.jwarc.WarcReader;
import org.netpreserve.jwarc.WarcRecord;

/** For each file: its name, then a line with type and SHA-1 of the block for each record, then how reading ended. */
public class Jwarc {
    public static void main(String[] files) throws Exception {
        for (String file : files) {
            System.out.println("file " + file);
            String end = "ok";
            try (WarcReader reader = new WarcReader(Path.of(file))) {
                reader.setLenient(true);
                for (WarcRecord record : reader) {
                    MessageDigest sha1 = MessageDigest.getInstance("SHA-1");
                    byte[] buffer = new byte[1 << 16];
                    InputStream block = record.body().stream();
                    for (int n; (n = block.read(buffer)) > 0; ) sha1.update(buffer, 0, n);
                    System.out.println("record " + record.type() + " " + HexFormat.of().formatHex(sha1.digest()));
                }
            } catch (Throwable e) {
                end = "error " + e.getClass().getSimpleName() + ": " + String.valueOf(e.getMessage()).replace('\n', ' ');
            }
            System.out.println("end " + end);
        }
    }
}
