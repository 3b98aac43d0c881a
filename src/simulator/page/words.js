// Every word of the page itself, in Chinese and English. What cards and toasts say comes from nod.

const WORDS = {
  page: ["nod 演示", "nod demo"],
  chats: ["会话", "Chats"],
  bot: ["nod 机器人", "nod bot"],
  botTag: ["机器人", "Bot"],
  group: ["商店项目组", "Shop team"],
  groupOf: ["群聊 · 3 位成员", "Group · 3 members"],
  owner: ["你", "You"],
  stranger: ["同事", "Colleague"],
  actAs: ["身份", "Act as"],
  theme: ["切换深浅色", "Switch light and dark"],
  language: ["Switch to English", "切换到中文"],
  languageShort: ["EN", "中"],
  travel: ["看看传了什么", "What travels"],
  travelHint: ["每一步都是真的：真实的 hook 进程、真实的长连接协议。点开可看原始数据。", "Every step is real: real hook processes, the real long-connection protocol. Open one for its raw data."],
  close: ["关闭", "Close"],
  empty: ["这里还没有消息。", "No messages here yet."],
  write: ["发送消息", "Message"],
  send: ["发送", "Send"],
  reply: ["回复", "Reply"],
  replyTo: ["回复", "Replying to"],
  cancel: ["取消", "Cancel"],
  confirm: ["确定", "Confirm"],
  recalled: ["此消息已撤回", "This message was recalled"],
  waitingTour: ["正在准备……", "Getting ready …"],
  scene: ["第 {n} 幕，共 {of} 幕", "Scene {n} of {of}"],
  next: ["下一幕", "Next"],
  skip: ["跳过", "Skip"],
  again: ["重看", "Again"],
  allSeen: ["全部看完了", "That was all"],
  allSeenText: ["可以重看任何一幕，或直接在聊天里试试。接下来：在终端按 Ctrl-C 结束，再阅读 README 里的设置步骤。", "Replay any scene, or just try things in the chat. Then press Ctrl-C in the terminal and read the README for the real thing."],
  restart: ["从头再来", "From the beginning"],
  scenes: ["所有场景", "All scenes"],
  asPlanned: ["和这一幕要演示的一样。", "Just as this scene is meant to end."],
  otherwise: ["你做了别的选择，nod 照办了。", "You chose otherwise, and nod did as told."],
  terminal: ["终端里的 Claude Code", "Claude Code in the terminal"],
  terminalAsks: ["允许运行吗？", "Do you want to proceed?"],
  terminalYes: ["1. 是", "1. Yes"],
  terminalEsc: ["2. 否（Esc）", "2. No (Esc)"],
  claude: ["你装有 Claude Code。让它向这里请求权限：在另一个终端运行", "You have Claude Code. To let it ask here, run this in another terminal"],
  claudeThen: ["再让它做一件要请求权限的事，例如新建一个文件。你自己的设置不变。", "Then have it do something it must ask for, such as making a file. Your own settings stay as they are."],
  copy: ["复制", "Copy"],
  copied: ["已复制", "Copied"],
  overTitle: ["演示已结束", "The demo is over"],
  over: ["终端里的 nod 已退出，临时文件都已删除。再次运行 nod demo 可以重新开始。", "nod in the terminal has ended and its files are gone. Run nod demo to start again."],
  unread: ["{n} 条未读", "{n} unread"],
  nowSays: ["卡片变为：{title}", "The card is now: {title}"],
  writeIt: ["填入消息框", "Put it in the box"],
  errorTitle: ["操作失败", "Something went wrong"],
  errorCode: ["错误码：{code}", "Error code: {code}"],
  cannot: ["无法点击：{why}", "This can't be tapped: {why}"],
  required: ["请填写必填项", "Fill in what is required"],
  choose: ["请选择", "Choose"],
  hookIn: ["Claude Code 启动 nod hook，问：{what}", "Claude Code starts nod hook and asks: {what}"],
  hookInNote: ["hook 经 Unix 套接字找到守护进程，然后等待", "The hook reaches the daemon over a Unix socket and waits"],
  cardSent: ["守护进程把卡片发给飞书（REST）", "The daemon sends Feishu a card (REST)"],
  textSent: ["nod 发出一条消息（REST）", "nod sends a message (REST)"],
  tapOut: ["{who}点击，飞书经长连接推给守护进程", "{who} tapped; Feishu pushes it over the long connection"],
  textOut: ["{who}写了消息，飞书经长连接推给守护进程", "{who} wrote; Feishu pushes it over the long connection"],
  frames: ["帧数：{n}", "frames: {n}"],
  toastBack: ["守护进程回一帧：提示“{text}”", "The daemon answers with a frame: toast “{text}”"],
  ackBack: ["守护进程回一帧：已收到", "The daemon answers with a frame: received"],
  after: ["点击后 {ms} 毫秒", "{ms} ms after the tap"],
  limit: ["飞书最多等 3 秒", "Feishu waits 3 s at most"],
  patched: ["守护进程更新卡片，看得到它的人都看到变化（REST）", "The daemon edits the card for everybody who sees it (REST)"],
  hookOut: ["hook 打印并退出：{what}", "The hook prints and ends: {what}"],
  nothing: ["什么都不打印，由终端决定", "nothing, so the terminal decides"],
  allow: ["批准", "allow"],
  allowRule: ["批准，并附上规则 {rule}", "allow, with the rule {rule}"],
  denySaying: ["拒绝：“{why}”", "deny: “{why}”"],
  interrupt: ["拒绝并中断", "deny and interrupt"],
  answered: ["回答", "the answer"],
  passed: ["同样的命令再来一次：由规则 {rule} 放行，没有卡片", "The same command again: the rule {rule} lets it pass, no card"],
  linkUp: ["守护进程连上了飞书的长连接", "The daemon's long connection to Feishu is up"],
  linkDown: ["长连接断开", "The long connection is gone"],
  crashed: ["守护进程被 kill -9", "The daemon was killed with -9"],
  started: ["守护进程重新启动，同一个请求继续等待", "The daemon is back, and the same request waits on"],
  ms: ["等了 {ms}", "waited {ms}"],
  raw: ["原始数据", "Raw data"],
};

let index = 0;

export function setLanguage(lang) {
  index = lang === "en" ? 1 : 0;
  document.documentElement.lang = lang === "en" ? "en" : "zh-CN";
}

export const language = () => (index === 1 ? "en" : "zh");

/** The word, with `{name}`s filled in. */
export function say(key, values = {}) {
  return WORDS[key][index].replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

/** The reader's language of a `{zh, en}` pair. */
export const pick = (pair) => (pair ? pair[language()] ?? pair.zh ?? "" : "");

/** The reader's language of Feishu's i18n texts. */
export const localised = (content, i18n) => i18n?.[index === 1 ? "en_us" : "zh_cn"] ?? content ?? "";
