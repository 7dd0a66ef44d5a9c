package peer;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** What the work of an agent really does: a line of PEER_LOG for each fact, and the tool that the model calls. */
final class Work {
    private Work() {}

    static synchronized void note(String fact) {
        try {
            Files.writeString(Path.of(System.getenv("PEER_LOG")), fact + "\n", StandardOpenOption.CREATE,
                    StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    /** A task begins: its conversation, and what was asked. */
    static void began(String context, String text) {
        note("began " + context + ": " + text);
    }

    /** Ticks each tenth of a second; an interrupt ends it, but for one that is deaf. */
    static String sleep(int run, int ticks, boolean deaf) {
        note("tool begins in run " + run);
        for (int tick = 1; tick <= ticks; tick++) {
            try {
                Thread.sleep(100);
            } catch (InterruptedException interrupt) {
                note("interrupt in run " + run);
                if (!deaf) {
                    Thread.currentThread().interrupt();
                    return "interrupted";
                }
            }
            note("tick in run " + run);
        }
        note("tool ends in run " + run);
        return "slept";
    }
}
