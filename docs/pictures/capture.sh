#!/usr/bin/env bash
# Captures the chat in its states, and draws each: docs/pictures/*.svg, and where there is a chromium, *.png too. Needs tmux.
# From the root of the repository:
#   cargo build && docs/pictures/capture.sh target/debug/safepoint
set -euo pipefail
program=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
play=$(mktemp -d)
trap 'tmux -L pictures kill-server 2>/dev/null || true; [ -z "${server:-}" ] || kill "$server"; rm -rf "$play"' EXIT
printf '#!/bin/sh\nsleep 300\n' >"$play/slow-tests"
chmod +x "$play/slow-tests"
mkdir -m 700 "$play/runtime"

"$program" practice --script "$here/script.json" >"$play/listening" 2>/dev/null &
server=$!
until [ -s "$play/listening" ]; do sleep 0.05; done
url=$(sed 's/.*"\(http[^"]*\)".*/\1/' "$play/listening")/v1

tmux() { command tmux -L pictures -f /dev/null "$@"; }
key() { tmux send-keys -t chat "$@"; sleep 0.15; }
until_seen() { until tmux capture-pane -p -t chat | grep -q "$1"; do sleep 0.05; done; sleep "${2:-0.3}"; }
picture() {
  tmux capture-pane -e -p -t chat >"$play/$1.ansi"
  cargo xtask picture "$play/$1.ansi" "$here/$1.svg" "safepoint: $2"
  if command -v chromium >"$play/chromium"; then
    read -r width height < <(head -1 "$here/$1.svg" | sed 's/.*width="\([0-9]*\)" height="\([0-9]*\)".*/\1 \2/')
    pixels "$width" "$height" "$here/$1" 2>"$play/$1.log" || cat "$play/$1.log"
  fi
}
pixels() {
  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --default-background-color=00000000 \
    --force-device-scale-factor=1.25 --window-size="$1,$2" --screenshot="$3.png" "file://$3.svg"
}

env -i PATH="$play:$PATH" HOME="$play" XDG_RUNTIME_DIR="$play/runtime" TERM=xterm-256color LANG=C.UTF-8 \
  tmux -L pictures -f /dev/null new-session -d -s chat -x 80 -y 24 \
  "cd $play; $program chat --base-url $url --model openai:model; sleep 1000"
until_seen 'Enter sends'
key 'Why does the test of the parser fail?' Enter
until_seen 'Shall I' 0.5
until_seen 'Enter sends'
picture idle 'idle'
key 'Yes, and run the slow tests.' Enter
until_seen 'y yes' 0.3
picture question 'a question'
key y
until_seen 'allowed' 0.2
until_seen 'half 2' 0.1
until_seen 'y yes' 0.2
key y
until_seen 'Esc stops' 3.2
picture busy 'busy'
key 'only the parser tests, please' Enter
until_seen 'steers, with'
key 'then write the changelog entry' M-Enter
until_seen 'queue, for'
key 'and update the docs' M-Enter
until_seen '2. and update' 1
picture queue 'a steer and a queue'
key Escape
until_seen 'Stopping' 1.2
picture stopping 'stopping'
key Escape
until_seen 'quiet: nothing' 0.5
picture stopped 'stopped'
