/** The style of the element. Colours can be set from outside with the custom properties of `:host`. */
export const style = `
:host {
  color-scheme: light dark;
  --cs-ground: light-dark(#fffdf8, #1b1c19);
  --cs-raised: light-dark(#f5f1e7, #242621);
  --cs-ink: light-dark(#22211d, #ece8dd);
  --cs-muted: light-dark(#646056, #a8a293);
  --cs-rule: light-dark(#ddd6c6, #3a3c34);
  --cs-chosen: light-dark(#e2ecdf, #2f3d34);
  --cs-focus: light-dark(#1d5c4a, #86c9ad);
  --cs-request: light-dark(#1f5a96, #8fbdf0);
  --cs-event: light-dark(#6a665b, #aaa595);
  --cs-state: light-dark(#6b4a8f, #cbb0ea);
  --cs-action: light-dark(#1d5c4a, #86c9ad);
  --cs-note: light-dark(#6f5a1e, #d9c07a);
  --cs-closed: light-dark(#8a3b2b, #f1a093);
  --cs-lit: light-dark(#7d5200, #f0c36c);
  --cs-mono: ui-monospace, "SF Mono", "Cascadia Code", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  --cs-sans: ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  display: block;
  height: 24rem;
  min-width: 0;
  container-type: inline-size;
  background: var(--cs-ground);
  color: var(--cs-ink);
  font: 13px / 1.45 var(--cs-sans);
}
:host([hidden]), [hidden] { display: none !important; }
*, *::before, *::after { box-sizing: border-box; }
.tools { display: grid; grid-template-columns: minmax(0, 1fr); grid-template-rows: auto auto minmax(0, 1fr); height: 100%; }
.bar { display: flex; flex-wrap: wrap; gap: 6px 14px; padding: 8px 10px; background: var(--cs-raised); border-bottom: 1px solid var(--cs-rule); }
.bar-row { display: flex; flex-wrap: wrap; align-items: center; gap: 6px; }
.bar-row:first-child { flex: 1 1 100%; justify-content: space-between; }
.title { font-weight: 600; }
.flags { display: flex; flex-wrap: wrap; gap: 6px; }
.chip { display: inline-block; padding: 0 7px; border: 1px solid var(--cs-rule); border-radius: 999px; font: 11.5px / 1.6 var(--cs-mono); white-space: nowrap; background: var(--cs-ground); }
.chip[data-lit="true"] { color: var(--cs-ground); background: var(--cs-lit); border-color: var(--cs-lit); }
.chip[data-status="error"], .chip[data-call="error"], .chip[data-call="denied"] { color: var(--cs-closed); border-color: currentColor; }
.chip[data-status^="awaiting"], .chip[data-call="approval-requested"] { color: var(--cs-lit); border-color: currentColor; }
.chip[data-call="complete"], .chip[data-call="approval-responded"] { color: var(--cs-action); border-color: currentColor; }
button { min-height: 26px; padding: 1px 9px; border: 1px solid var(--cs-rule); border-radius: 6px; background: var(--cs-ground); color: inherit; font: inherit; cursor: pointer; }
button:hover { border-color: var(--cs-muted); }
button[aria-pressed="true"] { background: var(--cs-chosen); border-color: var(--cs-focus); }
.filter { display: inline-flex; align-items: center; gap: 5px; border-radius: 999px; }
.filter::before { content: ""; width: 8px; height: 8px; border-radius: 50%; background: var(--kind); }
.filter[aria-pressed="false"] { color: var(--cs-muted); text-decoration: line-through; }
.filter[aria-pressed="false"]::before { background: none; box-shadow: inset 0 0 0 1px var(--cs-muted); }
.filter[aria-pressed="true"] { background: var(--cs-ground); border-color: var(--cs-rule); }
.number, .muted { color: var(--cs-muted); }
.number { font: 11.5px var(--cs-mono); }
[data-kind="request"] { --kind: var(--cs-request); }
[data-kind="event"] { --kind: var(--cs-event); }
[data-kind="state"] { --kind: var(--cs-state); }
[data-kind="action"] { --kind: var(--cs-action); }
[data-kind="note"] { --kind: var(--cs-note); }
[data-kind="closed"] { --kind: var(--cs-closed); }
.problem { margin: 0; padding: 6px 10px; color: var(--cs-closed); border-bottom: 1px solid var(--cs-rule); }
.panes { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); min-height: 0; }
.list { overflow: auto; overscroll-behavior: contain; }
.list:focus-visible { outline: none; }
.rows { position: relative; }
.row { position: absolute; inset: 0 0 auto; display: grid; grid-template-columns: 5.4rem 1.6rem 4.4rem minmax(0, 1fr) auto; gap: 8px; align-items: center; height: 26px; padding: 0 10px 0 7px; border-left: 3px solid var(--lane); font: 12px var(--cs-mono); white-space: pre; cursor: default; }
.row[data-lane="0"] { --lane: transparent; }
.row[data-lane="1"] { --lane: #4f8fd0; }
.row[data-lane="2"] { --lane: #c08a2d; }
.row[data-lane="3"] { --lane: #4da37f; }
.row[data-lane="4"] { --lane: #a877cf; }
.row[data-lane="5"] { --lane: #cf6f5c; }
.row:hover { background: var(--cs-raised); }
.row[aria-selected="true"] { background: var(--cs-chosen); }
.list:focus-visible .row[aria-selected="true"] { outline: 2px solid var(--cs-focus); outline-offset: -2px; }
.list:focus-visible:not([aria-activedescendant]) { outline: 2px solid var(--cs-focus); outline-offset: -2px; }
.row[data-kind="request"] .text, .row[data-kind="action"] .text { font-weight: 700; }
.time, .run, .count { color: var(--cs-muted); text-align: right; }
.kind { color: var(--kind); }
.text { overflow: hidden; text-overflow: ellipsis; }
.row[data-kind="state"] .text { color: var(--cs-state); }
.detail { overflow: auto; overscroll-behavior: contain; padding: 10px 12px 16px; border-left: 1px solid var(--cs-rule); }
.detail:focus-visible, pre:focus-visible, button:focus-visible { outline: 2px solid var(--cs-focus); outline-offset: -2px; }
.detail-head { display: flex; flex-wrap: wrap; gap: 2px 10px; align-items: baseline; }
h3, h4, p { margin: 0; }
h3 { font-size: 13px; color: var(--kind); }
h4 { margin: 12px 0 6px; font-size: 11.5px; color: var(--cs-muted); font-weight: 600; }
.standing { display: flex; flex-wrap: wrap; gap: 6px; }
.message { margin-top: 8px; padding-left: 9px; border-left: 2px solid var(--cs-rule); }
.message[data-role="user"] { border-color: var(--cs-action); }
.message-head { display: flex; flex-wrap: wrap; gap: 2px 8px; align-items: baseline; overflow-wrap: anywhere; }
.message-head .muted { font: 11px var(--cs-mono); }
.said { white-space: pre-wrap; overflow-wrap: anywhere; }
summary { cursor: pointer; overflow-wrap: anywhere; }
summary:focus-visible { outline: 2px solid var(--cs-focus); outline-offset: 2px; }
.mono { font: 11px var(--cs-mono); overflow-wrap: anywhere; }
.call { margin-top: 6px; padding: 5px 8px; border: 1px solid var(--cs-rule); border-radius: 6px; }
.approval { display: block; font: 11.5px var(--cs-mono); color: var(--cs-muted); overflow-wrap: anywhere; }
.failure { color: var(--cs-closed); overflow-wrap: anywhere; }
pre { margin: 6px 0 0; padding: 6px 8px; max-height: 16rem; overflow: auto; background: var(--cs-raised); border-radius: 5px; font: 12px / 1.5 var(--cs-mono); white-space: pre-wrap; overflow-wrap: anywhere; }
@container (max-width: 42rem) {
  .panes { grid-template-columns: minmax(0, 1fr); grid-template-rows: minmax(0, 4fr) minmax(0, 3fr); }
  .bar-row { flex: 1 1 100%; flex-wrap: nowrap; overflow-x: auto; scrollbar-width: none; }
  .bar-row:first-child { flex-wrap: wrap; gap: 4px; }
  .flags { flex-wrap: nowrap; gap: 4px; }
  .flag { padding: 0 6px; font-size: 10.5px; }
  button { flex: none; }
  .detail { border-left: 0; border-top: 1px solid var(--cs-rule); }
  .row { grid-template-columns: 3.9rem 1.2rem minmax(0, 1fr) auto; gap: 6px; }
  .row .kind { display: none; }
  .bar { gap: 5px 8px; padding: 6px 8px; }
  button { padding: 0 7px; }
  .row[data-kind] .text { color: var(--kind); }
}
@media (forced-colors: active) {
  .row[aria-selected="true"], button[aria-pressed="true"] { outline: 2px solid Highlight; outline-offset: -2px; }
}
`
