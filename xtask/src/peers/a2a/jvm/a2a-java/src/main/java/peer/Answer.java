package peer;

import io.a2a.server.agentexecution.RequestContext;
import io.a2a.server.events.EventQueue;
import io.a2a.server.tasks.TaskUpdater;
import io.a2a.spec.Message;
import io.a2a.spec.TextPart;
import java.util.List;

/** A task's answer, given piece by piece as one artifact. */
final class Answer {
    final String text;
    private final RequestContext context;
    private final TaskUpdater updater;
    private boolean appends;

    Answer(RequestContext context, EventQueue queue) {
        this.context = context;
        updater = new TaskUpdater(context, queue);
        text = ((TextPart) context.getMessage().getParts().get(0)).getText();
        updater.submit();
        updater.startWork();
        Work.began(context.getContextId(), text);
    }

    synchronized void piece(String piece) {
        updater.addArtifact(List.of(new TextPart(piece)), "text", null, null, appends, false);
        appends = true;
    }

    void complete() {
        Work.note("completed");
        updater.complete();
    }

    void fail(Throwable error) {
        Work.note("failed: " + error);
        updater.fail(new Message.Builder().role(Message.Role.AGENT).taskId(context.getTaskId())
                .contextId(context.getContextId()).parts(List.of(new TextPart(String.valueOf(error)))).build());
    }
}
