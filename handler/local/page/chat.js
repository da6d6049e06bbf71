// The local chat's window: conversations at the side, answers as they stream. Everything that pages or a
// model wrote goes into the document as text; links lead to http(s) addresses only.

const CUT = "The answer broke off.";
const MARK = "\uE000"; // stands where a citation goes; no text has it

const $ = (id) => document.getElementById(id);
const log = $("log"), question = $("question"), list = $("list");

// The answer that streams: its conversation, its thread, and how to stop it. One at a time.
let live = null;
let about = null;

function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

async function api(path, method = "GET", body = undefined) {
  const headers = body ? { "Content-Type": "application/json" } : {};
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  if (!response.ok) throw new Error(await problem(response));
  return response.status === 204 ? null : response.json();
}

async function problem(response) {
  const body = await response.json().catch(() => null);
  return body?.error?.message ?? `The server answered ${response.status}.`;
}

// ---- Answers ----

class AnswerView {
  constructor(asked, thread) {
    this.asked = asked;
    this.text = "";
    this.sources = [];
    this.citations = [];
    this.waits = element("p", { className: "waits", textContent: "searching …" });
    this.body = element("div", { className: "answer", dir: "auto", hidden: true });
    this.details = element("details", { className: "sources", hidden: true });
    this.node = element("div", {}, this.waits, this.body, this.details);
    thread.append(element("p", { className: "asked", dir: "auto", textContent: asked }), this.node);
  }

  setSources(sources) {
    this.sources = sources;
    this.waits.textContent = sources.length
      ? `reading ${sources.length} source${sources.length > 1 ? "s" : ""} …`
      : "nothing found that is near enough …";
    this.showSources();
  }

  addText(text) {
    this.text += text;
    this.show();
  }

  addCitation(citation) {
    this.citations.push(citation);
    this.show();
    this.showSources();
  }

  show() {
    this.waits.hidden = true;
    this.body.hidden = false;
    // The links for the marks, in the order of the text.
    const links = [...this.citations].sort((a, b) => a.at - b.at).map((citation) => this.link(citation));
    this.body.replaceChildren(...markdown(withMarks(this.text, this.citations), () => links.shift()));
  }

  link(citation) {
    const source = this.sources[citation.source - 1];
    const link = outside(source?.url, `[${citation.source}]`);
    link.classList.add("cite");
    link.setAttribute("aria-label", `source ${citation.source}: ${source?.title ?? ""}`);
    link.dataset.quote = citation.shown || citation.quote;
    if (!link.href) link.tabIndex = 0;
    return link;
  }

  showSources() {
    const cited = new Set(this.citations.map((citation) => citation.source));
    const items = this.sources.map((source) => {
      const place = [source.title, source.heading].filter(Boolean).join(" > ");
      const link = outside(source.url, place);
      link.title = source.snippet;
      const item = element("li", {}, `[${source.number}]`, element("span", {}, link));
      item.classList.toggle("cited", cited.has(source.number));
      return item;
    });
    const summary = cited.size ? `// sources: ${cited.size} cited of ${items.length}` : `// sources: ${items.length}`;
    this.details.hidden = !items.length;
    this.details.replaceChildren(element("summary", { textContent: summary }), element("ol", {}, ...items));
  }

  finish(error) {
    this.waits.hidden = true;
    this.details.open = !error && this.citations.length > 0;
    if (error === null) return;
    this.node.append(element("p", { className: "cut", textContent: error }));
    const again = element("button", { type: "button", className: "again", textContent: "ask again" });
    again.addEventListener("click", () => ask(this.asked));
    this.node.append(again);
  }
}

// The text with a mark wherever a citation stands. `at` counts code points, JavaScript UTF-16 units.
function withMarks(text, citations) {
  const points = [...text.replaceAll(MARK, "")];
  const places = citations.map((citation) => citation.at).sort((a, b) => b - a);
  for (const at of places) points.splice(at, 0, MARK);
  return points.join("");
}

// Nodes for the little markdown that models write: fenced code, `code` and **bold**. The rest stays text.
function markdown(text, citation) {
  const nodes = [];
  const inline = (part, into) => {
    for (const piece of part.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/)) {
      if (/^`.+`$/s.test(piece)) into.push(element("code", {}, ...marked(piece.slice(1, -1))));
      else if (/^\*\*.+\*\*$/s.test(piece)) into.push(element("strong", {}, ...marked(piece.slice(2, -2))));
      else into.push(...marked(piece));
    }
  };
  const marked = (part) => part.split(new RegExp(`(${MARK})`)).filter(Boolean)
    .map((piece) => (piece === MARK ? citation() : document.createTextNode(piece)));
  // A fence that is not closed yet runs to the end: the answer still streams.
  for (const part of text.split(/^(```[^\n]*\n[\s\S]*?(?:\n```[ \t]*$|$(?![\s\S])))/m)) {
    const code = /^```[^\n]*\n([\s\S]*?)(?:\n```[ \t]*)?$/.exec(part);
    if (code) nodes.push(element("pre", { tabIndex: 0 }, element("code", {}, ...marked(code[1]))));
    else inline(part.replace(/^\n+(?=[\s\S])|\n+$/g, ""), nodes); // blocks keep their own distance
  }
  return nodes;
}

// A link to a page, or the bare text where the address is not one of the web.
function outside(address, text) {
  const link = element("a", { textContent: text });
  let url = null;
  try { url = new URL(address); } catch { /* no address */ }
  if (url?.protocol === "https:" || url?.protocol === "http:") {
    Object.assign(link, { href: url.href, target: "_blank", rel: "noopener noreferrer" });
  }
  return link;
}

// ---- Asking ----

async function ask(text) {
  if (live || !text.trim()) return;
  const id = current();
  const thread = log.querySelector(".thread");
  thread.querySelector(".welcome")?.remove();
  const view = new AnswerView(text, thread);
  live = { id, thread, stop: new AbortController() };
  busy(view, true);
  toEnd(true);
  let error = CUT;
  try {
    error = await stream(text, id, view);
  } catch (problem) {
    error = live.stop.signal.aborted ? "Stopped." : CUT;
    if (!live.stop.signal.aborted) console.error(problem);
  }
  view.finish(error);
  busy(view, false);
  live = null;
  $("status").textContent = error ?? "The answer is complete.";
  toEnd();
  await showList();
}

// Shows the events of an answer as they come. Returns what broke it off, null when it is whole.
async function stream(text, id, view) {
  const response = await fetch("api/chat", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(id ? { question: text, conversation: id } : { question: text }),
    signal: live.stop.signal,
  });
  if (!response.ok) return problem(response);
  if (!id) {
    live.id = Number(response.headers.get("X-Conversation-Id"));
    if (!current() && log.contains(live.thread)) history.replaceState(null, "", `#${live.id}`);
    showList();
  }
  for await (const [name, data] of events(response.body)) {
    if (name === "sources") view.setSources(data.sources);
    else if (name === "text") view.addText(data.text);
    else if (name === "citation") view.addCitation(data);
    else if (name === "error") return data.message;
    else if (name === "done") return data.stop_reason === "max_tokens" ? "The answer got too long, and ends here." : null;
    toEnd();
  }
  return CUT;
}

// [name, data] of each event of a text/event-stream. Comments are skipped.
async function* events(body) {
  const decoder = new TextDecoder();
  let rest = "";
  for (const reader = body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const name = /^event: (.+)$/m.exec(block)?.[1];
      const data = /^data: (.+)$/m.exec(block)?.[1];
      if (name && data) yield [name, JSON.parse(data)];
    }
  }
}

function busy(view, is) {
  view.node.classList.toggle("streams", is);
  log.setAttribute("aria-busy", String(is));
  const hadFocus = $("stop") === document.activeElement;
  $("send").hidden = is;
  $("stop").hidden = !is;
  if (hadFocus) question.focus();
  if (is) $("status").textContent = "Searching, and waiting for the model.";
}

function toEnd(always = false) {
  const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 120;
  if (always || isAtEnd) log.scrollTop = log.scrollHeight;
}

// ---- Conversations ----

const current = () => Number(/^#(\d+)$/.exec(location.hash)?.[1] ?? 0);

async function showConversation() {
  const id = current();
  document.body.classList.remove("lists");
  $("toggle").setAttribute("aria-expanded", "false");
  let thread = element("div", { className: "thread" });
  if (live && live.id === id) thread = live.thread;
  else if (id) await fill(thread, id);
  else thread.append(welcome());
  if (id !== current()) return; // another one was chosen meanwhile
  log.replaceChildren(thread);
  toEnd(true);
  for (const link of list.querySelectorAll("a")) mark(link);
}

async function fill(thread, id) {
  try {
    const { messages } = await api(`api/conversations/${id}`);
    let asked = "";
    for (const { role, text, state, details } of messages) {
      if (role === "user") asked = text;
      else {
        const view = new AnswerView(asked, thread);
        Object.assign(view, { text, sources: details.sources, citations: details.citations });
        view.show();
        view.showSources();
        view.finish(state === "whole" ? null : details.error ?? CUT);
      }
    }
  } catch (error) {
    thread.append(element("p", { className: "cut", textContent: error.message }));
  }
}

function welcome() {
  const node = $("welcome").content.cloneNode(true);
  const names = about.collections.join(", ");
  node.querySelector(".what").textContent = names
    ? `Ask your pages: ${names}. Answers cite them.`
    : "There is nothing to ask yet: the index is empty.";
  return node;
}

async function showList() {
  const { conversations } = await api("api/conversations");
  // What is being renamed must not vanish under the hands.
  if (list.querySelector("input")) return;
  const focused = document.activeElement?.closest?.("#list a")?.hash;
  list.replaceChildren(...conversations.map(item));
  $("empty").hidden = conversations.length > 0;
  if (focused) list.querySelector(`a[href="${focused}"]`)?.focus();
}

function item({ id, title, updated_at }) {
  const link = element("a", { href: `#${id}`, textContent: title, dir: "auto" });
  const when = new Date(updated_at * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  link.title = `${title}\n${when}`;
  mark(link);
  const node = element("li", {}, link);
  const button = (text, label, action) => {
    const made = element("button", { type: "button", textContent: text, title: label });
    made.setAttribute("aria-label", `${label}: ${title}`);
    made.addEventListener("click", action);
    node.append(made);
  };
  button("✎", "rename", () => rename(node, id, title));
  button("✕", "delete", () => remove(id, title));
  return node;
}

function mark(link) {
  if (link.hash === location.hash) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
}

function rename(node, id, title) {
  const input = element("input", { value: title, maxLength: 80 });
  input.setAttribute("aria-label", "New name");
  const before = [...node.childNodes];
  let isOver = false;
  const end = async (isKept) => {
    if (isOver) return;
    isOver = true;
    const name = input.value.trim();
    node.replaceChildren(...before);
    node.querySelector("a").focus();
    if (isKept && name && name !== title) await api(`api/conversations/${id}`, "PATCH", { title: name }).catch(tell);
    await showList();
  };
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter") end(true);
    if (event.key === "Escape") end(false);
    event.stopPropagation();
  });
  input.addEventListener("blur", () => end(true));
  node.replaceChildren(input);
  input.select();
}

function remove(id, title) {
  const dialog = $("sure");
  $("sure-what").textContent = `Delete “${title}”?`;
  dialog.returnValue = "keep";
  dialog.onclose = async () => {
    if (dialog.returnValue !== "delete") return;
    if (live?.id === id) live.stop.abort();
    await api(`api/conversations/${id}`, "DELETE").catch(tell);
    if (id === current()) location.hash = "";
    await showList();
    $("status").textContent = "Deleted.";
    question.focus();
  };
  dialog.showModal();
}

function tell(error) {
  log.querySelector(".thread").append(element("p", { className: "cut", textContent: error.message }));
}

// ---- What was quoted ----

const quote = element("div", { id: "quote", role: "tooltip", hidden: true });
document.body.append(quote);

function showQuote(link) {
  quote.textContent = `“${link.dataset.quote.trim()}”`;
  quote.hidden = false;
  link.setAttribute("aria-describedby", "quote");
  const place = link.getBoundingClientRect();
  const isBelow = place.bottom + quote.offsetHeight + 8 < innerHeight;
  quote.style.left = `${Math.max(16, Math.min(place.left, innerWidth - quote.offsetWidth - 16))}px`;
  quote.style.top = `${isBelow ? place.bottom : Math.max(8, place.top - quote.offsetHeight)}px`;
}

for (const kind of ["mouseover", "focusin"]) {
  document.addEventListener(kind, ({ target }) => {
    const link = target.closest?.(".cite");
    if (link) showQuote(link);
    else if (!quote.contains(target)) quote.hidden = true;
  });
}

// ---- Keys and buttons ----

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (live || !question.value.trim()) return;
  const text = question.value.trim();
  question.value = "";
  ask(text);
});
question.addEventListener("keydown", (event) => {
  // Enter also ends the composing of a Chinese or Japanese word.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  $("form").requestSubmit();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || $("sure").open) return;
  if (!quote.hidden) quote.hidden = true;
  else live?.stop.abort();
});
$("stop").addEventListener("click", () => live?.stop.abort());
$("new").addEventListener("click", () => {
  location.hash = "";
  showConversation();
  question.focus();
});
$("toggle").addEventListener("click", () => {
  const isOpen = document.body.classList.toggle("lists");
  $("toggle").setAttribute("aria-expanded", String(isOpen));
});
addEventListener("hashchange", showConversation);

about = await api("api/about").catch((error) => ({ collections: [], error: error.message }));
$("who").textContent = about.error
  ?? `answers by ${about.model}, which runs here in Ollama; nothing leaves this machine`;
await Promise.all([showList(), showConversation()]);
question.focus();
