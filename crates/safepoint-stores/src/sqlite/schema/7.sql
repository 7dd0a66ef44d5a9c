-- Who waits for a decision, in all sessions: those who asked first first.
CREATE INDEX approvals_asked ON approvals (at) WHERE state = 0;
