/*! Ralph's widget: a terminal window that asks a site and shows where each answer stands. MIT licence.
 *
 * One file, no dependency, no build step. It lives in a shadow root and styles itself with a constructed
 * stylesheet, so a page's CSS does not reach it and a Content-Security-Policy without 'unsafe-inline'
 * lets it run. Whatever comes from the network becomes text nodes, never markup.
 */
(function () {
  'use strict';

  const script = document.currentScript || document.querySelector('script[src*="/widget.js"]');
  const LOADED = Symbol.for('ralph.widget');
  // A page that swaps its content and runs its scripts again keeps the widget and the conversation it has.
  if (window[LOADED]) return window[LOADED].attach();

  const HISTORY_TURNS = 6;
  const NAME_COOKIE = 'dawask_name';
  const NAME_LENGTH = 32;
  const YEAR_S = 365 * 24 * 3600;
  // The server sends a ping at least every 15 s: three missed ones mean that nobody is there.
  const SILENCE_MS = 45000;
  const TYPING_MS = 1200;
  const QUOTE_LENGTH = 320;
  const NEAREST = 3; // pages to look at when a whole answer cites none

  // --- Options ------------------------------------------------------------------------------------------

  const data = script ? script.dataset : {};
  const options = {
    api: data.apiUrl ? new URL(data.apiUrl, document.baseURI) : new URL('../api/ask', script?.src || location.href),
    title: data.title,
    user: data.promptUser || 'guest',
    host: data.promptHost,
    placeholder: data.placeholder || 'ask something…',
    intro: data.intro || 'Ask me about this site. I answer from its pages, and every claim links to where it stands.',
    starters: data.starters?.split('|').map((starter) => starter.trim()).filter(Boolean),
    inline: data.mode === 'inline',
    target: data.target,
  };

  /** What the server says of itself; all of it may be missing.
   * @type {{name?: string, privacy?: string, starters?: string[]}} */
  let about = {};
  const botName = () => about.name || 'davo-bot 2000';
  const title = () => options.title || botName();
  const hostName = () => options.host || botName().trim().replace(/\s+/g, '-');

  // --- Elements -----------------------------------------------------------------------------------------

  /** An element. Functions become listeners, true an empty attribute, strings text. */
  function h(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (typeof value === 'function') element.addEventListener(name.slice(2), value);
      else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : value);
    }
    element.append(...children.filter((child) => child));
    return element;
  }

  /** The address if a browser may follow it, else null: `javascript:` and its like are no links. */
  function webAddress(text) {
    try {
      const url = new URL(text, location.href);
      return url.protocol === 'https:' || url.protocol === 'http:' ? url : null;
    } catch {
      return null;
    }
  }

  function shorten(text, length) {
    const points = Array.from(text);
    return points.length > length ? points.slice(0, length - 1).join('') + '…' : text;
  }

  const OUTSIDE = { target: '_blank', rel: 'noopener' };
  const calm = () => matchMedia('(prefers-reduced-motion: reduce)').matches;
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

  // --- The visitor and the page -------------------------------------------------------------------------

  /** The name as it may stand in a prompt and a cookie: letters, digits and a little punctuation. */
  function cleanName(text) {
    const kept = text.normalize('NFC').replace(/[^\p{L}\p{M}\p{N} ._'’-]/gu, '').replace(/\s+/g, ' ').trim();
    return Array.from(kept).slice(0, NAME_LENGTH).join('').trim();
  }

  /** The visitor's name; '' when they would not say, null when they were never asked. */
  function readName() {
    const pair = document.cookie.split('; ').find((part) => part.startsWith(NAME_COOKIE + '='));
    if (pair === undefined) return null;
    try {
      return cleanName(decodeURIComponent(pair.slice(NAME_COOKIE.length + 1)));
    } catch {
      return null;
    }
  }

  function writeName(name) {
    const secure = location.protocol === 'https:' ? '; Secure' : '';
    document.cookie = `${NAME_COOKIE}=${encodeURIComponent(name)}; Max-Age=${YEAR_S}; Path=/; SameSite=Lax${secure}`;
  }

  const canonical = () => {
    const link = document.querySelector('link[rel="canonical"][href]');
    return link && webAddress(link.href);
  };
  const landed = { path: location.pathname, canonical: canonical()?.href };

  /** The page that is being read now. A canonical link left over from before a client-side navigation
   * names the wrong page: then the address bar is right. */
  function pageNow() {
    const here = new URL(location.href);
    here.hash = '';
    const named = canonical();
    const leftOver = location.pathname !== landed.path && named?.href === landed.canonical;
    return { url: named && !leftOver ? named.href : here.href, title: document.title };
  }

  // --- The stream ---------------------------------------------------------------------------------------

  /** A problem with a sentence for people. Codes are the server's, and network, cut_off, silence. */
  class Problem extends Error {
    constructor(code, message) {
      super(message);
      this.code = code;
    }
  }

  const BROKE_OFF = 'The answer broke off before its end.';
  const FELL_SILENT = `Nothing came from the server for ${SILENCE_MS / 1000} seconds.`;

  /** The lines of a stream of bytes, without their ends: LF, CR or CRLF, wherever packets are cut. */
  async function* readLines(body, heard) {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    let rest = '';
    let afterCr = false;
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return; // What is left is no whole line: an event is whole only with its empty line.
        heard();
        let text = decoder.decode(value, { stream: true });
        if (!text) continue;
        if (afterCr && text.startsWith('\n')) text = text.slice(1);
        afterCr = text ? text.endsWith('\r') : false;
        const lines = (rest + text).split(/\r\n|\n|\r/);
        rest = lines.pop();
        yield* lines;
      }
    } finally {
      // After the last event comes the end. Whoever cancels before it drops the connection that the next
      // question could use, and shows in the browser's tools as cancelled.
      reader.read().then(() => reader.cancel()).catch(() => {});
    }
  }

  /** The events of an event stream, as the HTML standard's section 9.2.6 reads them; data is JSON here. */
  async function* readEvents(body, heard) {
    let name = '';
    let lines = [];
    for await (const line of readLines(body, heard)) {
      if (line === '') {
        if (lines.length) yield { name, data: JSON.parse(lines.join('\n')) };
        name = '';
        lines = [];
      } else {
        const [, field, value] = /^([^:]*):? ?([^]*)$/.exec(line);
        if (field === 'event') name = value;
        if (field === 'data') lines.push(value);
      }
    }
  }

  /** Asks the server; gives its events. Throws a Problem when there are none, or when they stop coming. */
  async function* askServer(question, history, controller) {
    let silence;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => controller.abort(new Problem('silence', FELL_SILENT)), SILENCE_MS);
    };
    try {
      heard();
      const response = await fetch(options.api, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' },
        body: JSON.stringify({ question, history, page: pageNow() }),
        signal: controller.signal,
      });
      if (!response.ok) throw await refusal(response);
      yield* readEvents(response.body, heard);
    } catch (error) {
      if (controller.signal.aborted) throw controller.signal.reason;
      if (error instanceof Problem) throw error;
      // fetch and the reader reject with a TypeError for whatever goes wrong below HTTP.
      if (error instanceof TypeError) throw new Problem('network', 'The connection failed.');
      throw new Problem('cut_off', BROKE_OFF);
    } finally {
      clearTimeout(silence);
    }
  }

  async function refusal(response) {
    const body = await response.json().catch(() => ({}));
    const message = body.error?.message || `The server answered with status ${response.status}.`;
    return new Problem(body.error?.code || 'internal', message);
  }

  // --- Answers as text ----------------------------------------------------------------------------------

  /** Where the first `count` code points of `text` end, in UTF-16 units. */
  function codePointOffset(text, count) {
    let offset = 0;
    for (let seen = 0; seen < count && offset < text.length; seen += 1) {
      offset += text.codePointAt(offset) > 0xffff ? 2 : 1;
    }
    return offset;
  }

  const FENCE = /^ {0,3}```([^\n`]*)(?:\n|$(?![^]))([^]*?)(?:^ {0,3}```[ \t]*$|$(?![^]))/gm;
  const BLANK_LINES = /\n(?:[ \t]*\n)+/g;
  const INLINE_CODE = /`([^`\n]+)`/g;

  /** The parts of text[start:end] between the matches of `pattern`, and the matches, each with its place. */
  function* cut(text, start, end, pattern) {
    const part = text.slice(start, end);
    let last = 0;
    for (const match of part.matchAll(pattern)) {
      if (match.index > last) yield { start: start + last, end: start + match.index };
      last = match.index + match[0].length;
      yield { start: start + match.index, end: start + last, match };
    }
    if (last < part.length) yield { start: start + last, end };
  }

  /** An answer as paragraphs and fenced code, each a list of runs of text and code. Offsets are UTF-16.
   * All other markdown stays text as it is. */
  function blocksOf(text) {
    const blocks = [];
    for (const part of cut(text, 0, text.length, FENCE)) {
      if (part.match) {
        const run = { start: part.start, end: part.end, code: true, text: part.match[2].replace(/\n$/, '') };
        blocks.push({ tag: 'pre', start: part.start, runs: [run] });
        continue;
      }
      for (const { start, end, match } of cut(text, part.start, part.end, BLANK_LINES)) {
        if (match || !text.slice(start, end).trim()) continue;
        const runs = Array.from(cut(text, start, end, INLINE_CODE), (run) => ({
          ...run,
          code: Boolean(run.match),
          text: run.match ? run.match[1] : text.slice(run.start, run.end),
        }));
        blocks.push({ tag: 'p', start, runs });
      }
    }
    return blocks;
  }

  /** The citations by place and source, in order: two quotes of one source at one place share a mark. */
  function marksOf(text, citations) {
    const marks = new Map();
    for (const { source, quote, shown, at } of citations) {
      const offset = codePointOffset(text, at);
      const key = `${offset}/${source}`;
      if (!marks.has(key)) marks.set(key, { key, offset, source, quotes: [] });
      marks.get(key).quotes.push(shown || quote);
    }
    return Array.from(marks.values()).sort((a, b) => a.offset - b.offset || a.source - b.source);
  }

  /** The answer with its [n] in place and its sources below: what the copy button copies. */
  function plainText({ text, citations, sources }) {
    let out = '';
    let last = 0;
    for (const { offset, source } of marksOf(text, citations)) {
      out += text.slice(last, offset) + `[${source}]`;
      last = offset;
    }
    out += text.slice(last);
    const cited = citedSources({ citations, sources });
    const list = cited.map((source) => `[${source.number}] ${source.title} ${webAddress(source.url)?.href ?? ''}`);
    return [out, ...(list.length ? ['', ...list] : [])].join('\n');
  }

  const citedSources = ({ citations, sources }) =>
    sources.filter(({ number }) => citations.some(({ source }) => source === number));

  const sourceName = ({ title: page, heading }) => (heading ? `${page} > ${heading}` : page).replaceAll(' > ', ' › ');

  // --- One question and its answer ----------------------------------------------------------------------

  /** A question with what came back so far; draws itself into `element` as events arrive. */
  class Exchange {
    constructor(question, prompt) {
      this.question = question;
      this.body = h('div', { class: 'answer', lang: '' }); // In whatever language it is.
      this.progress = h('p', { class: 'progress' });
      this.after = h('div', { class: 'after' });
      this.element = h('article', { class: 'exchange', 'aria-label': 'Question and answer' },
        h('h3', { class: 'command' },
          h('span', { class: 'prompt' }, prompt), ' ask ', h('bdi', { lang: '' }, `"${question}"`)),
        this.progress, this.body, this.after);
      this.reset();
    }

    reset() {
      this.text = '';
      this.sources = [];
      this.citations = [];
      this.quotes = new Map(); // by mark, more of them while the answer comes in
      this.done = null;
      this.failed = false;
      this.nodes = new Map();
      this.body.replaceChildren();
      this.after.replaceChildren();
      this.progress.replaceChildren('searching');
      this.element.classList.add('streaming');
    }

    /** Takes in one event of the stream. */
    take(name, event) {
      if (name === 'sources') this.showFound(event.sources);
      if (name === 'text') this.text += event.text;
      if (name === 'citation') this.citations.push(event);
      if (name === 'done') this.done = event;
      if (name === 'error') throw new Problem(event.code, event.message);
      if (name === 'text' || name === 'citation') this.draw();
    }

    showFound(sources) {
      this.sources = sources;
      const pages = new Set(sources.map((source) => source.url.split('#')[0])).size;
      this.progress.replaceChildren(pages ? `reading ${pages} ${pages === 1 ? 'page' : 'pages'}` : 'thinking');
    }

    /** Brings the shown answer up to what has arrived. Nodes are kept by their place in the text, so that
     * a selection, or a mark that is hovered or focused, outlives the next piece of text. */
    draw() {
      if (this.text.trim()) this.progress.replaceChildren();
      const marks = marksOf(this.text, this.citations);
      const blocks = blocksOf(this.text);
      place(this.body, blocks.map((block, i) => {
        const until = blocks[i + 1]?.start ?? Infinity;
        const own = marks.filter(({ offset }) => (i === 0 || offset > block.start) && offset <= until);
        const dir = block.tag === 'p' ? 'auto' : 'ltr';
        const element = this.node(`${block.tag}/${block.start}`, () => h(block.tag, { dir }));
        place(element, this.drawRuns(block.runs, own));
        return element;
      }));
    }

    /** Text and code with the marks in place; a mark within code stands behind it. */
    drawRuns(runs, marks) {
      const nodes = [];
      const waiting = marks.slice();
      for (const run of runs) {
        let from = run.start;
        while (waiting.length && waiting[0].offset <= run.end) {
          const mark = waiting.shift();
          if (!run.code && mark.offset > from) {
            nodes.push(this.textNode(from, run.text.slice(from - run.start, mark.offset - run.start)));
            from = mark.offset;
          } else if (run.code && from < run.end) {
            nodes.push(this.codeNode(run));
            from = run.end;
          }
          nodes.push(this.markNode(mark));
        }
        if (from === run.end) continue;
        nodes.push(run.code ? this.codeNode(run) : this.textNode(from, run.text.slice(from - run.start)));
      }
      return nodes.concat(waiting.map((mark) => this.markNode(mark)));
    }

    node(key, make) {
      if (!this.nodes.has(key)) this.nodes.set(key, make());
      return this.nodes.get(key);
    }

    textNode(start, text) {
      const node = this.node(`text/${start}`, () => document.createTextNode(''));
      if (text.startsWith(node.data)) node.appendData(text.slice(node.length));
      else node.data = text;
      return node;
    }

    codeNode({ start, text }) {
      const node = this.node(`code/${start}`, () => h('code'));
      if (node.textContent !== text) node.textContent = text;
      return node;
    }

    markNode({ key, source: number, quotes }) {
      this.quotes.set(key, quotes);
      const source = this.sources.find((one) => one.number === number);
      const url = source && webAddress(source.url);
      return this.node(`mark/${key}`, () => {
        const label = `[${number}] ${source ? sourceName(source) : 'source'}`;
        const mark = url
          ? h('a', { class: 'mark', href: url.href, ...OUTSIDE, 'aria-label': `${label} (new tab)` }, `[${number}]`)
          : h('button', { class: 'mark', type: 'button', 'aria-label': label }, `[${number}]`);
        tip.serve(mark, () => ({ source, quotes: this.quotes.get(key) }));
        return mark;
      });
    }

    /** Ends the answer: with its sources, or with what went wrong. */
    end({ note, problem, retry }) {
      this.element.classList.remove('streaming');
      this.progress.replaceChildren();
      this.draw();
      const cited = citedSources(this);
      const nearest = cited.length || retry ? [] : this.sources.slice(0, NEAREST);
      if (cited.length) this.after.append(sourceList('// sources', cited));
      if (nearest.length) this.after.append(sourceList('// nearest pages', nearest));
      if (problem) this.after.append(h('p', { class: 'problem' }, h('span', { 'aria-hidden': 'true' }, '! '), problem));
      const button = (label, kind, onclick) => h('button', { class: `small ${kind}`, type: 'button', onclick }, label);
      this.after.append(h('div', { class: 'actions' },
        retry && button('retry', 'retry', retry),
        this.text && navigator.clipboard && button('copy answer', 'copy', (event) => this.copy(event.currentTarget)),
        note && h('p', { class: 'note' }, note)));
    }

    async copy(button) {
      const copying = navigator.clipboard.writeText(plainText(this));
      button.textContent = await copying.then(() => 'copied', () => 'copying is not allowed here');
      say(button.textContent);
      await wait(2000);
      button.textContent = 'copy answer';
    }
  }

  /** Makes `nodes` the children of `parent`, moving none that stands right. */
  function place(parent, nodes) {
    nodes.forEach((node, i) => {
      if (parent.childNodes[i] !== node) parent.insertBefore(node, parent.childNodes[i] ?? null);
    });
    while (parent.childNodes.length > nodes.length) parent.lastChild.remove();
  }

  function sourceList(heading, sources) {
    return h('div', { class: 'sources' }, h('h4', {}, heading), h('ol', {}, ...sources.map((source) => {
      const url = webAddress(source.url);
      const name = h('bdi', {}, sourceName(source));
      return h('li', {},
        h('span', { class: 'number', 'aria-hidden': 'true' }, `[${source.number}]`),
        url ? h('a', { href: url.href, ...OUTSIDE }, name, h('span', { class: 'unseen' }, ' (new tab)')) : name,
        url && h('span', { class: 'address', 'aria-hidden': 'true' }, readable(url)));
    })));
  }

  /** An address for people: without its scheme, with its letters. */
  function readable(url) {
    const text = url.host + url.pathname.replace(/\/$/, '') + url.hash;
    try {
      return decodeURI(text);
    } catch {
      return text;
    }
  }

  /** What stands under a whole answer: who made it, and whether all of it is there. */
  function noteOf({ citations, done: { model, stop_reason: reason } }) {
    const notes = [];
    if (reason === 'max_tokens') notes.push('The answer ends here because it reached its longest length.');
    if (reason === 'refusal') notes.push('The model declined to answer.');
    if (model) notes.push(`Answered by ${model}.`);
    else if (citations.length) notes.push('Quoted word for word from this site; no language model was asked.');
    else notes.push('No language model was asked.');
    return notes.join(' ');
  }

  // --- The quoted words, on hover and focus -------------------------------------------------------------

  /** The tooltip of the marks. The pointer may move onto it, and Escape hides it (WCAG 1.4.13). */
  const tip = {
    element: h('div', { class: 'tip', id: 'tip', role: 'tooltip', hidden: true }),
    mark: null,
    timer: 0,

    /** Has `mark` show what `cited` gives then: the quotes, and the source if it is known. */
    serve(mark, cited) {
      const show = () => this.show(mark, cited());
      const byFinger = ({ pointerType }) => pointerType === 'touch';
      let firstTap = false;
      mark.addEventListener('pointerenter', (event) => byFinger(event) || show());
      mark.addEventListener('pointerleave', (event) => byFinger(event) || this.hideSoon());
      mark.addEventListener('pointerdown', (event) => { firstTap = byFinger(event) && this.mark !== mark; });
      mark.addEventListener('focus', show);
      mark.addEventListener('blur', () => this.hide());
      // A finger cannot hover: its first tap shows the words, the next one follows the link.
      mark.addEventListener('click', (event) => {
        if (firstTap) event.preventDefault();
        firstTap = false;
        show();
      });
    },

    show(mark, { source, quotes }) {
      clearTimeout(this.timer);
      if (this.mark === mark) return;
      this.hide();
      this.mark = mark;
      const words = quotes.map((quote) => h('q', { dir: 'auto' }, shorten(quote.trim(), QUOTE_LENGTH)));
      this.element.replaceChildren(...words, source ? h('cite', { dir: 'auto' }, sourceName(source)) : '');
      this.element.hidden = false;
      mark.setAttribute('aria-describedby', 'tip');
      this.settle(mark);
    },

    /** Below the mark, so that the claim above stays readable, unless there is room above it alone. */
    settle(mark) {
      const frame = ui.window.getBoundingClientRect();
      const screen = ui.screen.getBoundingClientRect();
      const at = mark.getBoundingClientRect();
      if (at.bottom < screen.top || at.top > screen.bottom) return this.hide(); // It was scrolled away.
      const { width, height } = this.element.getBoundingClientRect();
      const left = Math.max(8, Math.min(at.left - frame.left - 16, frame.width - width - 8));
      const isLow = at.bottom + height + 8 > frame.bottom && at.top - height > screen.top;
      const top = isLow ? at.top - height - 2 : at.bottom + 2;
      this.element.style.setProperty('left', `${left}px`);
      this.element.style.setProperty('top', `${top - frame.top}px`);
      return undefined;
    },

    hideSoon() {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => {
        if (root.activeElement !== this.mark) this.hide();
      }, 250);
    },

    /** Whether there was something to hide. */
    hide() {
      clearTimeout(this.timer);
      if (!this.mark) return false;
      this.mark.removeAttribute('aria-describedby');
      this.mark = null;
      this.element.hidden = true;
      return true;
    },
  };
  tip.element.addEventListener('pointerenter', () => clearTimeout(tip.timer));
  tip.element.addEventListener('pointerleave', () => tip.hideSoon());

  // --- The banner ---------------------------------------------------------------------------------------

  // Letters of 3 by 5 dots: five rows, an octal digit each.
  const LETTERS = {
    a: '25755', b: '65656', c: '34443', d: '65556', e: '74647', f: '74644', g: '34553', h: '55755', i: '72227', j: '11152',
    k: '55655', l: '44447', m: '57755', n: '65555', o: '75557', p: '65644', q: '25563', r: '65655', s: '34216', t: '72222',
    u: '55557', v: '55552', w: '55775', x: '55255', y: '55222', z: '71247', 0: '75557', 1: '26227', 2: '71747', 3: '71717',
    4: '55711', 5: '74717', 6: '74757', 7: '71222', 8: '75757', 9: '75717', '-': '00700', '.': '00002', ' ': '00000',
  };

  /** The name in large letters of half blocks; null when it is long, or has others than the LETTERS. */
  function banner(name) {
    const letters = Array.from(name.toLowerCase(), (letter) => LETTERS[letter]);
    if (letters.includes(undefined) || letters.length > 14) return null;
    const bits = (digit) => Number(digit).toString(2).padStart(3, '0');
    const dots = [0, 1, 2, 3, 4].map((row) => letters.map((rows) => bits(rows[row])).join('0'));
    const line = (upper, lower) => Array.from(upper, (dot, i) => ' ▄▀█'[2 * dot + 1 * (lower?.[i] ?? 0)]).join('');
    return [0, 2, 4].map((row) => line(dots[row], dots[row + 1])).join('\n');
  }

  // --- The window ---------------------------------------------------------------------------------------

  const light = (color, label, sign, onclick) =>
    h('button', { class: `light ${color}`, type: 'button', 'aria-label': label, title: label, onclick },
      h('span', { 'aria-hidden': 'true' }, sign));

  const ui = {
    launcher: h('button', { class: 'launcher', type: 'button', 'aria-haspopup': 'dialog', onclick: () => open() },
      h('span', { 'aria-hidden': 'true' }, '>', h('i', {}, '_'))),
    title: h('h2', { class: 'title', id: 'title' }),
    maximise: light('green', 'Maximise', '+', () => toggleMaximised()),
    intro: h('div', { class: 'intro' }),
    log: h('div', { class: 'log' }),
    prompt: h('label', { class: 'prompt', for: 'input' }),
    input: h('textarea', {
      id: 'input', rows: '1', dir: 'auto', maxlength: '4000', autocomplete: 'off', autocapitalize: 'sentences',
      spellcheck: 'false', enterkeyhint: 'send',
    }),
    submit: h('button', { class: 'key', type: 'submit' }, 'ask', h('span', { 'aria-hidden': 'true' }, ' ⏎')),
    skip: h('button', { class: 'key', type: 'button', hidden: true, onclick: () => giveName('') }, 'skip'),
    stop: h('button', { class: 'key', type: 'button', hidden: true, title: 'Escape', onclick: () => stop() },
      h('span', { 'aria-hidden': 'true' }, '■ '), 'stop'),
    privacy: h('p', { class: 'privacy', hidden: true }),
    spoken: h('div', { class: 'unseen', role: 'status', 'aria-live': 'polite' }),
  };
  ui.form = h('form', { class: 'line', onsubmit: (event) => { event.preventDefault(); enter(); } },
    ui.prompt, ui.input, ui.submit, ui.skip, ui.stop);
  ui.screen = h('div', { class: 'screen' }, ui.intro, ui.log, ui.form);
  ui.window = h('dialog', { class: 'window', 'aria-labelledby': 'title' },
    h('header', { class: 'bar' },
      h('div', { class: 'lights' },
        light('red', 'Close', '×', () => close()),
        light('amber', 'Minimise', '–', () => minimise()),
        ui.maximise),
      ui.title),
    ui.screen, ui.privacy, tip.element, ui.spoken);
  // In the top layer no z-index of the page is above the launcher.
  const layer = options.inline ? {} : { popover: 'manual' };
  ui.corner = h('section', { class: 'corner', 'aria-label': 'Ask this site', ...layer }, ui.launcher);

  const element = document.createElement('ralph-widget');
  const root = element.attachShadow({ mode: 'open' });
  root.append(h('div', { class: options.inline ? 'shell inline' : 'shell', lang: 'en', dir: 'ltr' }, ui.corner, ui.window));

  /** Names the window and its launcher. `ready`: an answer came in while the window was minimised. */
  function showTitle({ ready = false } = {}) {
    const label = ready ? `Ask ${title()}: your answer is there` : `Ask ${title()}`;
    ui.title.textContent = title();
    ui.launcher.setAttribute('aria-label', label);
    ui.launcher.title = label;
    ui.launcher.classList.toggle('ready', ready);
  }

  const promptText = () => `${(readName() || options.user).replace(/\s+/g, '-')}@${hostName()} ~ %`;

  /** Shows what the line at the end expects: a question, or the visitor's name. */
  function showPrompt() {
    const naming = state.naming;
    ui.prompt.textContent = naming ? 'name:' : promptText();
    ui.input.placeholder = naming ? 'your name, or Enter to skip' : options.placeholder;
    ui.input.setAttribute('aria-label', naming ? 'Your name; it may stay empty' : `Your question to ${title()}`);
    ui.submit.hidden = Boolean(state.run) || naming;
    ui.skip.hidden = !naming;
    ui.stop.hidden = !state.run;
  }

  /** Has a screen reader say `text` once it is done with what it says now. */
  function say(text) {
    ui.spoken.textContent = text;
  }

  /** Grows the input with its lines. */
  function fitInput() {
    ui.input.style.setProperty('height', 'auto');
    ui.input.style.setProperty('height', `${ui.input.scrollHeight}px`);
  }

  /** Keeps the end in view while the reader is there, and leaves them alone when they scrolled back. */
  const follow = {
    wanted: true,
    noticed() {
      this.wanted = ui.screen.scrollHeight - ui.screen.scrollTop - ui.screen.clientHeight < 40;
    },
    now() {
      if (this.wanted) ui.screen.scrollTop = ui.screen.scrollHeight;
    },
  };

  // --- Opening and closing ------------------------------------------------------------------------------

  const state = { shown: false, greeted: false, naming: false, hurry: null, run: null, exchanges: [], opener: null };

  const tell = (name, detail = {}) => window.dispatchEvent(new CustomEvent(`ralph:${name}`, { detail }));

  function open() {
    if (ui.window.open) return ui.input.focus();
    state.opener = root.activeElement ?? document.activeElement;
    state.shown = true;
    ui.corner.hidden = true;
    if (ui.corner.popover && ui.corner.matches(':popover-open')) ui.corner.hidePopover();
    showTitle();
    if (options.inline) ui.window.show();
    else ui.window.showModal();
    fitViewport();
    greet();
    // A phone's keyboard would cover what is said in greeting.
    if (!matchMedia('(pointer: coarse)').matches) ui.input.focus();
    follow.now();
    tell('open');
  }

  /** Hides the window; the answer that is being written goes on, and the launcher tells when it is there. */
  function minimise() {
    ui.window.close();
    closed();
  }

  /** Hides the window and stops what is going on in it. The conversation is kept until the page is left. */
  function close() {
    stop();
    minimise();
  }

  /** Also when the browser closed it, upon Escape or Android's back. Its event comes late: the window may
   * be open again, or it only moved into or out of the top layer. */
  function closed() {
    if (ui.window.open || !state.shown) return;
    state.shown = false;
    tip.hide();
    ui.window.classList.remove('maximised');
    showLauncher();
    const { opener } = state;
    const back = opener?.isConnected && opener !== document.body && opener !== element && !root.contains(opener);
    (back ? opener : ui.launcher).focus();
    tell('close');
  }

  function showLauncher() {
    ui.corner.hidden = false;
    if (ui.corner.popover && element.isConnected && !ui.corner.matches(':popover-open')) ui.corner.showPopover();
  }

  /** A window within the page grows out of it, into the top layer, and back. */
  function toggleMaximised() {
    const maximised = ui.window.classList.toggle('maximised');
    ui.maximise.setAttribute('aria-label', maximised ? 'Restore' : 'Maximise');
    ui.maximise.title = maximised ? 'Restore' : 'Maximise';
    if (options.inline) {
      ui.window.close();
      if (maximised) ui.window.showModal();
      else ui.window.show();
      ui.maximise.focus();
    }
    follow.now();
  }

  /** On phones the keyboard covers what it likes; the window takes what is left. */
  function fitViewport() {
    const { visualViewport: view } = window;
    if (!view) return;
    ui.window.style.setProperty('--view-height', `${view.height}px`);
    ui.window.style.setProperty('--view-top', `${view.offsetTop}px`);
    follow.now();
  }

  // --- Greeting -----------------------------------------------------------------------------------------

  async function fetchAbout() {
    try {
      const response = await fetch(new URL('about', options.api));
      if (response.ok) about = await response.json();
    } catch {
      // Nothing rests on it: the widget greets as davo-bot 2000, without starters.
    }
    showTitle();
    showPrompt();
    ui.privacy.textContent = about.privacy ?? '';
    ui.privacy.hidden = !about.privacy;
  }

  async function greet() {
    if (state.greeted) return;
    state.greeted = true;
    const name = readName();
    state.naming = name === null;
    const known = fetchAbout();
    showPrompt();
    await type(name ? `Welcome back, ${name}. ${options.intro}` : options.intro);
    await Promise.race([known, wait(2000)]);
    const art = banner(botName());
    if (art) ui.intro.append(h('pre', { class: 'banner', 'aria-hidden': 'true' }, art));
    await known;
    const starters = options.starters ?? about.starters;
    if (starters?.length) ui.intro.append(starterList(starters));
    if (state.naming) ui.intro.append(h('p', { class: 'asking' }, 'What should I call you? Or ask right away.'));
    follow.now();
  }

  function starterList(starters) {
    return h('div', { class: 'starters' }, h('h3', {}, '// try'), h('ul', {}, ...starters.slice(0, 4).map((question) =>
      h('li', {}, h('button', { type: 'button', dir: 'auto', onclick: () => ask(question) }, question)))));
  }

  /** Types `text` out. All of it stands there from the start, unseen, for screen readers and the layout. */
  async function type(text) {
    const line = h('p', { class: 'typed' });
    ui.intro.append(line);
    const letters = Array.from(text);
    const perTick = Math.ceil((letters.length * 24) / TYPING_MS);
    let shown = calm() ? letters.length : 0;
    state.hurry = () => { shown = letters.length; };
    while (shown < letters.length) {
      const [seen, coming] = [letters.slice(0, shown), letters.slice(shown)].map((part) => part.join(''));
      line.replaceChildren(seen, h('span', { class: 'coming' }, coming));
      await wait(24);
      shown += perTick;
    }
    line.textContent = text;
  }

  function giveName(text) {
    const name = cleanName(text);
    writeName(name);
    state.naming = false;
    ui.intro.querySelector('.asking')?.remove();
    if (name) ui.log.append(h('p', { class: 'greeting' }, `Hello, ${name}. What would you like to know?`));
    if (name) say(`Hello, ${name}.`);
    ui.input.value = '';
    showPrompt();
    ui.input.focus();
    follow.now();
  }

  // --- Asking -------------------------------------------------------------------------------------------

  /** Takes what was typed: a name, a command of the terminal, or a question. */
  function enter() {
    const text = ui.input.value.trim();
    // Who answers "what is this?" when asked for a name wants an answer, not a name.
    if (state.naming && !/[?？؟]|(\S+\s+){3}/.test(text)) return giveName(text);
    if (!text || state.run) return undefined;
    ui.input.value = '';
    fitInput();
    const [word, ...rest] = text.split(/\s+/);
    if (word === 'name' && rest.length <= 3) return giveName(rest.join(' '));
    if (text === 'clear') return clear();
    if (text === 'exit') return close();
    return ask(text);
  }

  function clear() {
    ui.log.replaceChildren();
    state.exchanges = [];
  }

  /** What was said before `exchange`, oldest first: whole answers, and stopped ones as far as they came. */
  function historyOf(exchange) {
    const before = state.exchanges.slice(0, state.exchanges.indexOf(exchange));
    const told = before.filter((one) => one.text && !one.failed);
    const turns = told.flatMap((one) => [['user', one.question], ['assistant', one.text]]);
    return turns.slice(-HISTORY_TURNS).map(([role, text]) => ({ role, text }));
  }

  /** Asks; opens the window if need be. Whatever is being answered is stopped. */
  function ask(question) {
    const text = String(question).trim();
    if (!text) return;
    if (!ui.window.open) open();
    stop();
    if (state.naming) giveName('');
    state.hurry?.();
    const exchange = new Exchange(text, promptText());
    ui.log.append(exchange.element);
    state.exchanges.push(exchange);
    run(exchange);
  }

  /** Runs one question to its end; never throws. */
  async function run(exchange) {
    const controller = new AbortController();
    const { question } = exchange;
    state.run = controller;
    follow.wanted = true;
    showPrompt();
    say('Looking for an answer.');
    tell('ask', { question, page: pageNow() });
    follow.now();
    try {
      for await (const { name, data: event } of askServer(question, historyOf(exchange), controller)) {
        if (controller.signal.aborted) throw controller.signal.reason;
        exchange.take(name, event);
        follow.now();
        if (exchange.done) break;
      }
      if (!exchange.done) throw new Problem('cut_off', BROKE_OFF);
      exchange.end({ note: noteOf(exchange) });
      const { text, sources, citations, done } = exchange;
      tell('answer', { question, text, sources, citations, done });
      sayAnswer(exchange);
    } catch (error) {
      endEarly(exchange, error);
    }
    if (state.run === controller) state.run = null;
    if (!ui.window.open && !controller.signal.aborted) showTitle({ ready: true });
    // A button that goes away must not take the focus with it.
    if (root.activeElement === ui.stop) ui.input.focus();
    showPrompt();
    follow.now();
  }

  function endEarly(exchange, error) {
    const { question } = exchange;
    const retry = () => {
      stop();
      exchange.reset();
      ui.input.focus();
      run(exchange);
    };
    if (error.code === 'stopped') {
      exchange.end({ note: 'Stopped.', retry });
      return say('Stopped.');
    }
    const isUnreadable = !(error instanceof Problem);
    const { code, message } = isUnreadable ? { code: 'internal', message: BROKE_OFF } : error;
    if (isUnreadable) exchange.reset(); // To draw what it is made of would fail again.
    exchange.failed = true;
    exchange.end({ problem: message, retry });
    tell('error', { question, code, message });
    return say(`${message} You can retry.`);
  }

  function sayAnswer(exchange) {
    const count = citedSources(exchange).length;
    say(`${exchange.text}${count ? ` ${count} ${count === 1 ? 'source' : 'sources'} below.` : ''}`);
  }

  function stop() {
    state.run?.abort(new Problem('stopped', 'Stopped.'));
    state.run = null;
  }

  // --- Keys ---------------------------------------------------------------------------------------------

  function keyDown(event) {
    if (event.isComposing) return;
    state.hurry?.();
    if (event.key === 'Escape') {
      // The quoted words go first, then the running answer; else the browser closes the window.
      if (tip.hide()) event.preventDefault();
      else if (state.run) {
        stop();
        event.preventDefault();
      }
    }
    if (event.target !== ui.input) return;
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      enter();
    }
    if (event.key === 'ArrowUp' && !ui.input.value && state.exchanges.length) {
      event.preventDefault();
      ui.input.value = state.exchanges.at(-1).question;
      fitInput();
    }
  }

  // --- The look -----------------------------------------------------------------------------------------

  const LOOK = `
:host { all: initial !important; display: contents !important; direction: ltr !important; unicode-bidi: isolate !important; }
:host(.inline) { display: block !important; }
* { box-sizing: border-box; margin: 0; padding: 0; }
[hidden] { display: none !important; }
.shell {
  --green: #5fe38d; --bright: #eafff1; --cyan: #6fdcec; --dim: #86a79a; --red: #ff938a; --amber: #ffd479;
  --ink: #080c0e; --mono: ui-monospace, "SF Mono", SFMono-Regular, Menlo, "Cascadia Code", Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace;
  display: contents; color-scheme: dark; font: 14px/24px var(--mono); color: var(--green); text-align: start;
  -webkit-text-size-adjust: none; text-size-adjust: none; font-variant-ligatures: none;
}
button, textarea { font: inherit; color: inherit; background: none; border: 0; letter-spacing: inherit; }
button { cursor: pointer; }
a { color: var(--cyan); text-decoration: underline; text-decoration-color: rgb(111 220 236 / .4); text-underline-offset: 3px; }
a:hover { text-decoration-color: currentColor; }
:focus-visible { outline: 2px solid var(--cyan); outline-offset: 2px; border-radius: 3px; }
::selection { background: #1d6a52; color: #fff; }
ol, ul { list-style: none; }
h3, h4 { font: inherit; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }

.corner {
  position: fixed; inset: auto calc(20px + env(safe-area-inset-right)) calc(20px + env(safe-area-inset-bottom)) auto;
  width: auto; height: auto; overflow: visible; background: none; border: 0; z-index: 2147483647;
}
.launcher {
  display: grid; place-items: center; width: 56px; height: 56px; border-radius: 14px; color: var(--green);
  font-size: 21px; font-weight: 700; line-height: 1; background: linear-gradient(160deg, #16211f, #080c0e 60%);
  border: 1px solid rgb(160 226 240 / .55);
  box-shadow: 0 0 0 1px rgb(0 0 0 / .5), 0 8px 24px rgb(0 0 0 / .35), inset 0 1px 0 rgb(255 255 255 / .14);
  transition: transform .16s ease, box-shadow .16s ease, border-color .16s ease;
}
.launcher i { font-style: normal; color: var(--cyan); animation: blink 1.2s steps(1) infinite; }
.launcher:hover { transform: translateY(-2px); border-color: var(--cyan); box-shadow: 0 0 0 1px rgb(0 0 0 / .5), 0 12px 28px rgb(0 0 0 / .4), 0 0 22px rgb(111 220 236 / .35), inset 0 1px 0 rgb(255 255 255 / .14); }
.launcher:focus-visible { outline: 3px solid var(--cyan); outline-offset: 3px; box-shadow: 0 0 0 3px #080c0e, 0 0 0 8px #080c0e; border-radius: 14px; }
.launcher.ready::after { content: ""; position: absolute; top: -4px; right: -4px; width: 14px; height: 14px; border-radius: 50%; background: var(--green); border: 2px solid var(--ink); }

.window {
  position: fixed; inset: 0; margin: auto; width: min(820px, 100vw - 48px); height: min(600px, 100dvh - 48px);
  max-width: none; max-height: none; overflow: hidden; color: inherit; border-radius: 11px;
  border: 1px solid rgb(0 0 0 / .55); background: rgb(8 12 14 / .91);
  -webkit-backdrop-filter: blur(18px) saturate(1.5); backdrop-filter: blur(18px) saturate(1.5);
  box-shadow: 0 0 0 1px rgb(190 235 245 / .22), 0 30px 80px rgb(0 0 0 / .5), 0 8px 24px rgb(0 0 0 / .35);
}
.window[open] { display: flex; flex-direction: column; animation: rise .2s cubic-bezier(.2, .8, .3, 1); }
.window::backdrop { background: rgb(4 14 18 / .38); animation: fade .2s ease; }
.window.maximised { width: calc(100vw - 24px); height: calc(100dvh - 24px); }
.bar {
  position: relative; flex: none; display: flex; align-items: center; height: 36px; padding-inline: 10px;
  background: linear-gradient(#effcfe, #c9eef5 48%, #aee2ed 52%, #c4eff6); border-bottom: 1px solid #5f97a5;
  box-shadow: inset 0 1px 0 #fff; color: #16343d;
}
.lights { display: flex; position: relative; z-index: 1; }
.light { display: grid; place-items: center; width: 24px; height: 24px; border-radius: 50%; }
.light span {
  display: grid; place-items: center; width: 14px; height: 14px; border-radius: 50%; color: transparent;
  font: 700 12px/1 var(--mono); border: 1px solid rgb(0 0 0 / .32);
  box-shadow: inset 0 3px 3px -1px rgb(255 255 255 / .75), inset 0 -2px 3px rgb(255 255 255 / .28), 0 1px 0 rgb(255 255 255 / .7);
}
.red span { background: #ec5f55; } .amber span { background: #f0b429; } .green span { background: #4fb848; }
.lights:hover span, .lights:focus-within span { color: rgb(40 12 4 / .85); }
.light:focus-visible { outline-color: #0b5566; outline-offset: -2px; border-radius: 50%; }
.title {
  position: absolute; inset-inline: 96px; text-align: center; font: 600 13px/1 system-ui, -apple-system, "Helvetica Neue", sans-serif;
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap; padding-block: 3px; text-shadow: 0 1px 0 rgb(255 255 255 / .8);
}
.screen {
  flex: 1; min-height: 0; overflow-y: auto; overscroll-behavior: contain; padding: 16px 20px 20px; scrollbar-width: thin;
  scrollbar-color: #2c4a45 transparent; background: radial-gradient(120% 80% at 50% -20%, rgb(70 190 200 / .1), transparent 60%);
  overflow-wrap: anywhere;
}
.privacy { flex: none; padding: 6px 20px; font-size: 12px; line-height: 16px; color: var(--dim); border-top: 1px solid rgb(160 226 240 / .14); }
.privacy::before { content: "●"; content: "●" / ""; color: var(--green); margin-inline-end: 8px; font-size: 9px; vertical-align: 1px; }

.coming { opacity: 0; }
.banner { margin-block: 14px 4px; font: 14px/1.15 var(--mono); color: var(--cyan); text-shadow: 0 0 12px rgb(111 220 236 / .3); overflow: hidden; white-space: pre; }
.starters { margin-top: 12px; }
.starters h3, .sources h4 { color: var(--dim); }
.starters button { min-height: 28px; padding: 2px 6px 2px 0; text-align: start; color: var(--cyan); }
.starters button::before { content: "› "; content: "› " / ""; color: var(--green); }
.starters button:hover { color: var(--bright); }
.asking, .greeting { margin-top: 12px; }
.asking { color: var(--amber); }

.line { display: flex; flex-wrap: wrap; align-items: flex-start; column-gap: 9px; margin-top: 14px; }
.prompt { color: var(--cyan); white-space: pre-wrap; }
.line .prompt { padding-block: 2px; }
textarea {
  flex: 1 1 14em; min-width: 0; height: 28px; padding-block: 2px; color: var(--bright); caret-color: var(--green); resize: none;
  overflow: hidden; caret-shape: block;
}
textarea:focus-visible { outline: none; border-radius: 0; box-shadow: 0 1px 0 var(--cyan); }
textarea::placeholder { color: var(--dim); opacity: 1; }
.key, .small {
  min-height: 28px; padding: 0 10px; font-size: 12px; line-height: 26px; border: 1px solid rgb(160 226 240 / .3); border-radius: 6px; color: var(--dim);
}
.key:hover, .small:hover { color: var(--bright); border-color: var(--cyan); }

.exchange { margin-top: 16px; }
.command { color: var(--bright); }
.command .prompt { margin-inline-end: 0; }
.progress { color: var(--dim); }
.progress:empty, .actions:empty { display: none; }
.progress::after { content: "…"; content: "…" / ""; animation: blink 1.2s steps(1) infinite; }
.answer p, .answer pre { white-space: pre-wrap; margin-top: 8px; max-width: 78ch; }
.answer pre { padding: 8px 12px; color: var(--bright); background: rgb(160 226 240 / .07); border-inline-start: 2px solid var(--cyan); border-radius: 0 6px 6px 0; }
.answer code { font: inherit; color: var(--bright); }
.answer p code { padding: 1px 5px; background: rgb(160 226 240 / .1); border-radius: 4px; }
.streaming .answer > :last-child::after { content: "▋"; content: "▋" / ""; color: var(--green); animation: blink 1s steps(1) infinite; }
.mark {
  padding: 5px 2px; min-width: 24px; font-size: 12px; color: var(--cyan); text-decoration: none; unicode-bidi: isolate;
  white-space: nowrap; border-radius: 4px;
}
.mark::before { content: "\\2060"; }
.mark:hover, .mark[aria-describedby] { background: rgb(111 220 236 / .2); color: var(--bright); }
.sources { margin-top: 12px; }
.sources li { display: grid; grid-template-columns: auto 1fr; column-gap: 8px; padding-block: 2px; }
.number { color: var(--dim); }
.sources a { justify-self: start; }
.address { grid-column: 2; font-size: 12px; line-height: 16px; color: var(--dim); }
.note { font-size: 12px; line-height: 18px; color: var(--dim); }
.problem { margin-top: 8px; color: var(--red); }
.actions { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 10px; margin-top: 10px; }
.retry { color: var(--amber); border-color: rgb(255 212 121 / .5); }

.tip {
  position: absolute; z-index: 2; width: max-content; max-width: min(440px, 100% - 16px); padding: 10px 14px; font-size: 13px; line-height: 20px;
  color: var(--bright); background: #10201f; border: 1px solid rgb(111 220 236 / .55); border-radius: 8px; box-shadow: 0 12px 32px rgb(0 0 0 / .6);
  overflow-wrap: anywhere;
}
.tip q { display: block; quotes: "“" "”"; }
.tip q + q { margin-top: 6px; }
.tip cite { display: block; margin-top: 6px; font-style: normal; font-size: 12px; color: var(--cyan); }

.inline .window:not(:modal) { position: relative; inset: auto; margin: 0; width: 100%; height: var(--ralph-height, 480px); animation: none; background: var(--ink); box-shadow: 0 0 0 1px rgb(190 235 245 / .22); }
.inline .corner { position: static; }

@media (max-width: 640px), (max-height: 440px) {
  .window:modal, .window.maximised {
    inset: var(--view-top, 0) 0 auto; margin: 0; width: 100vw; height: var(--view-height, 100dvh); border: 0; border-radius: 0; box-shadow: none;
    background: rgb(8 12 14 / .97);
  }
  .window:modal .green { display: none; }
  .bar { height: 44px; }
  .screen { padding: 12px 14px 16px; }
  .privacy { padding: 6px 14px calc(6px + env(safe-area-inset-bottom)); }
  textarea { font-size: 16px; flex-basis: 12em; } /* below 16px iOS zooms into the page */
  .banner { font-size: min(14px, 2.9vw); }
}
@media (prefers-reduced-motion: reduce) {
  *, *::before, *::after, ::backdrop { animation: none !important; transition: none !important; }
}
@media (prefers-reduced-transparency: reduce) { .window { background: var(--ink); } }
@media print { :host { display: none !important; } }
@media (forced-colors: active) {
  .window, .launcher, .tip, .key, .small { border: 1px solid ButtonText; }
  .light span { color: ButtonText; }
}
@keyframes blink { 50% { opacity: 0; } }
@keyframes fade { from { opacity: 0; } }
@keyframes rise { from { opacity: 0; transform: translateY(10px) scale(.985); } }
`;

  // --- Start --------------------------------------------------------------------------------------------

  /** Puts the widget into the page; again after a client-side navigation that threw it out. */
  function attach() {
    if (element.isConnected) return;
    if (options.inline) {
      const beside = document.body.contains(script) ? script.parentElement : document.body;
      (document.querySelector(options.target || ':not(*)') ?? beside).append(element);
      ui.window.setAttribute('open', ''); // show() would take the focus away from the page.
      state.shown = true;
      ui.corner.hidden = true;
      greet();
      return;
    }
    document.documentElement.append(element); // Outside of the body, which some sites swap as a whole.
    if (ui.window.open) ui.window.close();
    showLauncher();
  }

  const sheet = new CSSStyleSheet();
  sheet.replaceSync(LOOK);
  root.adoptedStyleSheets = [sheet];
  element.classList.toggle('inline', options.inline);
  showTitle();
  showPrompt();
  // Keys typed here are none of the page's shortcuts, and the focus here no business of its own dialogs.
  for (const type of ['keydown', 'keyup', 'keypress', 'focusin']) root.addEventListener(type, (event) => event.stopPropagation());
  ui.window.addEventListener('keydown', keyDown);
  ui.window.addEventListener('close', closed);
  ui.window.addEventListener('click', (event) => {
    state.hurry?.();
    if (!event.composedPath().some((one) => one === tip.mark || one === tip.element)) tip.hide();
  });
  ui.input.addEventListener('input', fitInput);
  ui.screen.addEventListener('scroll', () => {
    follow.noticed();
    if (tip.mark) tip.settle(tip.mark);
  }, { passive: true });
  window.visualViewport?.addEventListener('resize', fitViewport);
  window.visualViewport?.addEventListener('scroll', fitViewport);

  window[LOADED] = { attach };
  window.ralph = Object.freeze({ open, close, ask });
  if (options.inline && document.readyState === 'loading') document.addEventListener('DOMContentLoaded', attach);
  else attach();
})();
