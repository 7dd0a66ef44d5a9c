-- A stop that takes back what waits finds it without looking at what is long decided.
CREATE INDEX approvals_open ON approvals (session) WHERE state = 0;
