//! The small Feishu of the model: it names messages, takes edits and takes them
//! back when a tap on their card is over.

use super::*;

impl World {
    pub(super) fn tap(&mut self, n: usize) {
        let Some(at) = self.keys.get(&id(n)).copied() else {
            return;
        };
        // Without any line Feishu says so at once.
        let Some((line, silent)) = self.line else {
            return;
        };
        let tap = self.events;
        self.count("taps");
        self.taps.insert(tap, at);
        let message = &mut self.messages[at];
        message.taps.push(UnderWay {
            tap,
            before: (message.face.clone(), message.version),
            patched: false,
        });
        self.later(TAP, Event::TapOver(tap));
        if silent.is_none() {
            let delay = 1 + self.dice(300);
            self.later(delay, Event::Heard { line, tap });
        } else {
            self.count("taps lost");
        }
    }

    pub(super) fn heard(&mut self, line: u64, tap: u64) {
        if self.line != Some((line, None)) {
            return self.count("taps lost");
        }
        let at = self.taps[&tap];
        let (n, soon) = (self.messages[at].of, self.dice(2) == 0);
        let is_altered = !self.is_calm() && self.dice(4) == 0;
        let named = if is_altered { at + ALTERED } else { at };
        let mut is_told = true;
        self.tell(self.life, |book, now| {
            book.tapped(&message(named), now);
            book.tapped_on(&id(n), &message(named), now);
            let known = book.message_of(&id(n)).cloned();
            is_told = known.is_none_or(|known| known == message(named));
            book.adopt(&id(n), &message(named));
        });
        if is_altered {
            self.count("names altered");
        }
        if !is_told {
            let takes = 1 + self.dice(200);
            return self.later(takes, Event::Answered { line, tap });
        }
        self.end(n, OVER_AFTER);
        let shown = self
            .book
            .as_ref()
            .and_then(|book| book.face(&message(named)).cloned());
        if let Some(shown) = shown.filter(|_| soon) {
            self.tell(self.life, |book, now| {
                book.edit_soon(message(named), shown, now);
            });
        }
        let takes = 1 + self.dice(200);
        self.later(takes, Event::Answered { line, tap });
    }

    /// Feishu's rule.
    pub(super) fn tap_over(&mut self, tap: u64) {
        let message = &mut self.messages[self.taps[&tap]];
        let Some(at) = message.taps.iter().position(|it| it.tap == tap) else {
            return;
        };
        let over = message.taps.remove(at);
        if over.patched {
            (message.face, message.version) = over.before;
            self.count("edits taken back");
        }
    }

    /// A sending, with whatever may become of it.
    pub(super) fn call(&mut self, call: Call, id: RequestId, shown: String) {
        let (life, takes) = (self.life, 1 + self.dice(400));
        match if self.is_calm() { 9 } else { self.dice(10) } {
            0 => self.later(takes, Event::Unsent(life, id, false, call)),
            1 => self.later(takes, Event::Unsent(life, id, true, call)),
            2 => {
                // It arrives, and the answer is lost.
                self.later(takes, Event::Sending(id.clone(), shown));
                self.later(takes + 2_000, Event::Unsent(life, id, true, call));
            }
            _ => {
                self.later(takes, Event::Sending(id.clone(), shown));
                let back = takes + 1 + self.dice(2_000);
                let name = message(number(&id));
                self.later(back, Event::Sent(life, id, name, call));
            }
        }
    }

    pub(super) fn arrives(&mut self, id: RequestId, face: String) {
        if self.keys.contains_key(&id) {
            return;
        }
        let n = number(&id);
        while self.messages.len() <= n {
            self.messages.push(Message {
                of: self.messages.len(),
                face: String::new(),
                version: 0,
                taps: Vec::new(),
            });
        }
        self.messages[n].face = face;
        assert_eq!(self.keys.insert(id, n), None, "a second card");
    }

    pub(super) fn patch(&mut self, patch: Patch) {
        let (life, seed) = (self.life, self.seed);
        assert!(
            self.patching.insert(patch.message.clone()),
            "seed {seed}: two edits of one message at once"
        );
        assert!(self.patching.len() <= 32, "seed {seed}");
        if index(&patch.message) >= ALTERED {
            let unknown = Event::Patched(life, patch.message, Patched::Refused);
            return self.later(1, unknown);
        }
        let key = CardKey::Message(patch.message.clone());
        let text = match &patch.edit {
            PatchOf::Soon(card) | PatchOf::Unkept(card) | PatchOf::Kept(_, Some(card)) => {
                card.to_string()
            }
            PatchOf::Kept(version, None) => {
                let row = self.disk.outbox.get(&key);
                let Some(row) = row.filter(|row| row.version == *version) else {
                    let gone = Event::Patched(life, patch.message, Patched::Refused);
                    return self.later(1, gone);
                };
                row.face.kept.to_string()
            }
        };
        let (takes, back) = (1 + self.dice(300), 1 + self.dice(300));
        let fails = !self.is_calm() && self.dice(8) == 0;
        if fails && self.dice(2) == 0 {
            let failed = Event::Patched(life, patch.message, Patched::Passing(None));
            return self.later(takes, failed);
        }
        let answer = (!fails).then_some(back);
        self.later(
            takes,
            Event::Patching {
                life,
                patch,
                text,
                answer,
            },
        );
    }

    pub(super) fn patch_arrives(
        &mut self,
        life: u64,
        patch: &Patch,
        text: String,
        answer: Option<u64>,
    ) {
        let seed = self.seed;
        let message = &mut self.messages[index(&patch.message)];
        let version = match patch.edit {
            PatchOf::Kept(version, _) => version,
            PatchOf::Soon(_) => message.version,
            PatchOf::Unkept(_) => panic!("seed {seed}: everything is kept"),
        };
        // What a dead daemon had sent may come late, and is put right.
        if life == self.life {
            let shown = message.version;
            assert!(shown <= version, "seed {seed}: {version} after {shown}");
        }
        for tap in &mut message.taps {
            tap.patched = true;
        }
        (message.face, message.version) = (text, version);
        self.last.insert(message.of, version);
        let patched = if answer.is_some() {
            if let PatchOf::Kept(version, _) = patch.edit {
                self.taken.insert(version, self.now);
            }
            Patched::Taken
        } else {
            Patched::Passing(None)
        };
        let back = answer.unwrap_or(1_000);
        self.later(back, Event::Patched(life, patch.message.clone(), patched));
    }
}
