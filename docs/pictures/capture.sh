#!/usr/bin/env bash
# Captures the chat in its states, and draws each: an SVG, and where there is chromium or rsvg-convert, a PNG too (smaller where
# there is pngquant). Needs tmux. From the root of the repository:
#   cargo build && docs/pictures/capture.sh target/debug/safepoint
# The same states in another width, with a light background, in another folder:
#   docs/pictures/capture.sh target/debug/safepoint 60 light /tmp/pictures
set -euo pipefail
program=$(realpath "$1")
columns=${2:-80} theme=${3:-dark}
here=$(realpath "$(dirname "$0")")
folder=$(realpath "${4:-$here}")
play=$(mktemp -d)
trap 'tmux kill-server 2>/dev/null || true; [ -z "${server:-}" ] || kill "$server"; rm -rf "$play"' EXIT

# The project that is worked on, and the home of its person.
work="$play/words" home="$play/home"
mkdir -p "$work/src" "$home/.config/safepoint"
mkdir -m 700 "$play/runtime"
cp "$here/parser.txt" "$work/src/parser.rs"
printf '#!/bin/sh\nsleep 300\n' >"$work/slow-tests"
printf '#!/bin/sh\necho "published 0.3.1"\n' >"$work/publish"
printf 'tabs?\n' >"$work/notes.md"
chmod +x "$work/slow-tests" "$work/publish"
printf 'theme = "%s"\nwindow = 200000\n' "$theme" >"$home/.config/safepoint/config.toml"

"$program" practice --script "$here/script.json" >"$play/listening" 2>/dev/null &
server=$!
until [ -s "$play/listening" ]; do sleep 0.05; done
url=$(sed 's/.*"\(http[^"]*\)".*/\1/' "$play/listening")/v1

# The server has the environment of the first session: nothing of the one who captures may be in it.
clean() {
  env -i PATH="$PATH" HOME="$home" XDG_RUNTIME_DIR="$play/runtime" TERM=xterm-256color COLORTERM=truecolor LANG=C.UTF-8 "$@"
}
tmux() { command tmux -L "pictures-$$" -f /dev/null "$@"; }
key() { tmux send-keys -t chat "$@"; sleep 0.15; }
until_seen() {
  for _ in $(seq 200); do
    if tmux capture-pane -p -t chat | grep -qe "$1"; then sleep "${2:-0.3}"; return; fi
    sleep 0.05
  done
  tmux capture-pane -p -t chat >&2
  echo "not seen: $1" >&2
  exit 1
}
chat() {
  tmux kill-session -t chat 2>/dev/null || true
  clean tmux -L "pictures-$$" -f /dev/null new-session -d -s chat -x "$columns" -y "${rows:-24}" \
    "cd $work; clear; export COLORTERM=truecolor; $program $*; sleep 1000"
}
# Without it the server would end with each chat, and the next one might find it ending.
clean tmux -L "pictures-$$" -f /dev/null new-session -d -s stays 'sleep 3600'
say() { key "$1" Enter; }
# Those that the documentation shows; in another folder, all.
shown=' idle question stopping stopped diff rewind markdown picker '
picture() {
  if [ "$folder" = "$here" ] && [[ "$shown" != *" $1 "* ]]; then return; fi
  tmux capture-pane -e -p -t chat >"$play/$1.ansi"
  cargo xtask picture "$play/$1.ansi" "$folder/$1.svg" "safepoint: $2" "$columns" "$theme"
  pixels "$folder/$1" 2>"$play/$1.log" || cat "$play/$1.log"
}
pixels() {
  if command -v chromium >"$play/found"; then
    local width height
    read -r width height < <(head -1 "$1.svg" | sed 's/.*width="\([0-9]*\)" height="\([0-9]*\)".*/\1 \2/')
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --default-background-color=00000000 \
      --force-device-scale-factor=1.25 --window-size="$width,$height" --screenshot="$1.png" "file://$1.svg"
  elif command -v rsvg-convert >"$play/found"; then
    rsvg-convert --zoom 1.25 --output "$1.png" "$1.svg"
  fi
  if [ -e "$1.png" ] && command -v pngquant >"$play/found"; then
    pngquant --force --skip-if-larger --strip --ext .png 64 "$1.png" || true
  fi
}
ours="chat --base-url $url --model openai:model"

chat
until_seen 'Enter sends'
picture first 'first run'
tmux kill-session -t chat

chat "$ours"
until_seen 'Enter sends'
say 'Why does the test of the parser fail?'
until_seen 'Shall I' 0.5
until_seen 'Enter sends'
picture idle 'idle'
say 'Yes, and run the slow tests.'
until_seen 'y yes' 0.3
picture question 'a question'
key y
until_seen 'allowed' 0.2
until_seen 'half 2' 0.1
until_seen 'y yes' 0.2
key y
until_seen 'Esc stops' 3.2
picture busy 'busy'
say 'only the parser tests, please'
until_seen 'steer' 0.5
key 'then write the changelog entry' M-Enter
until_seen 'queue' 0.5
key 'and update the docs' M-Enter
until_seen '2. and update' 1
picture queue 'a steer and a queue'
key Escape
until_seen 'Stopping' 1.2
picture stopping 'stopping'
key Escape
until_seen 'running   nothing' 0.5
picture stopped 'stopped'

rows=34 chat "$ours"
until_seen 'Enter sends'
say 'Tabs are white space, too. Mend the parser.'
until_seen 'h hunk by hunk' 0.9
picture diff 'a question about an edit'
key h
until_seen 'hunk 1 of 2' 0.9
until_seen 'y make'
key y
until_seen 'hunk 2 of 2' 0.9
until_seen 'y make'
picture hunks 'hunk by hunk'
key n
until_seen 'separate words now' 0.5
until_seen 'Enter sends'
picture edited 'an edit that was made'
echo 'tabs!' >"$work/notes.md"
say 'Good. Now publish it.'
until_seen 'y yes' 0.9
key y
until_seen 'is published' 0.5
until_seen 'Enter sends'
say '/rewind 1'
until_seen 'b both go back' 0.9
picture rewind 'going back'
key Escape
tmux kill-session -t chat

rows=24 chat "$ours --continue"
until_seen 'Enter sends'
key C-l
say '/context'
sleep 1
say '/cost'
sleep 1
picture meter 'what fills the window, and what it has cost'

rows=34 chat "$ours"
until_seen 'Enter sends'
say 'Compare the ways to split a line.'
until_seen 'Say so in' 0.5
until_seen 'Enter sends'
picture markdown 'a table and code'

for words in 'plan the release' 'write the docs of the parser' 'fix the flaky test of the reader'; do
  rows=24 chat "$ours"
  until_seen 'Enter sends'
  say "$words"
  sleep 0.5
  until_seen 'Enter sends' 0.5
done
say '/resume all'
until_seen 'type to search' 0.9
picture picker 'stored conversations'
