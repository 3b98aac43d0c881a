// What happened, counted from the history alone: requests, taps, times, what became of each scene.

const MAX_KEPT = 1000;

export const tally = {
  /** Scenes that were played to their end, by number. */
  seen: new Set(),
  allowed: 0,
  denied: 0,
  left: 0,
  /** Milliseconds from a tap to its toast, from a tap to the terminal, and from a kill to a connection. */
  toasts: [],
  runs: [],
  back: [],
};

/** The scene that plays: when somebody last acted in Feishu, and what they pressed in the terminal. */
const now = { acted: null, pressed: null };

export function decision(stdout) {
  try {
    return JSON.parse(stdout).hookSpecificOutput.decision;
  } catch {
    return null;
  }
}

function keep(list, ms) {
  list.push(ms);
  list.splice(0, Math.max(0, list.length - MAX_KEPT));
}

export function median(list) {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor((sorted.length - 1) / 2)] : null;
}

export function span(ms) {
  if (ms === null) return "–";
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`;
  return Number.isInteger(ms) ? `${ms} ms` : `${ms.toFixed(1)} ms`;
}

/** What a hook's end comes to: `{how, ms, rule, why, answers}`. */
function became(entry) {
  const made = decision(entry.stdout);
  const ms = now.acted === null ? null : Math.max(0, entry.at - now.acted);
  if (!made) return { how: now.pressed ?? "timeout", ms: null };
  if (made.behavior === "allow") {
    const rule = made.updatedPermissions?.[0]?.rules?.[0];
    const named = rule && (rule.ruleContent ? `${rule.toolName}(${rule.ruleContent})` : rule.toolName);
    if (named) return { how: "always", ms, rule: named };
    const answers = made.updatedInput?.answers;
    if (answers) return { how: "answers", ms, answers };
    return { how: made.updatedInput?.plan ? "plan" : "allow", ms };
  }
  return { how: made.interrupt ? "interrupt" : "deny", ms, why: made.message };
}

/** Counts one entry; what a hook's end came to, if it is one. */
export function count(entry) {
  if (entry.kind === "event_out") now.acted = entry.at;
  if (entry.kind === "clicked" && Number.isFinite(entry.latency_us)) keep(tally.toasts, entry.latency_us / 1000);
  if (entry.kind !== "note") return null;
  if (entry.note === "scene") Object.assign(now, { acted: null, pressed: null });
  if (entry.ask === "terminal") now.pressed = entry.answer === "yes" ? "yes" : "esc";
  if (entry.note === "scene_end") tally.seen.add(entry.scene);
  if (entry.note === "daemon" && entry.what === "started") keep(tally.back, entry.ms);
  if (entry.note !== "hook_out") return null;
  const what = became(entry);
  if (what.ms !== null) keep(tally.runs, what.ms);
  if (["allow", "always", "answers", "plan"].includes(what.how)) tally.allowed += 1;
  else if (["deny", "interrupt"].includes(what.how)) tally.denied += 1;
  else tally.left += 1;
  return what;
}
