import { colorVariables, fonts } from '@tollgate/kit/design-tokens';

/** The style sheet of all pages. Components are in the order of the files in this folder. */
export const stylesheet = `:root { color-scheme: light dark; ${colorVariables()} }
* { box-sizing: border-box }
html { scroll-padding-top: 4rem; scrollbar-gutter: stable }
body { margin: 0; background: var(--back); color: var(--text); font: .875rem/1.45 ${fonts.text}; font-variant-numeric: tabular-nums; overflow-wrap: anywhere }
h1 { margin: 0; font-size: 1.25rem; line-height: 1.3 }
h2 { margin: 0 0 .5rem; font-size: 1rem; line-height: 1.3 }
p { margin: 0 0 .5rem }
a { color: var(--accent); text-underline-offset: .15em }
code, pre { font: .8125rem/1.45 ${fonts.code} }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
.dim, .unit { color: var(--dim) }
.n { white-space: nowrap }
.visually-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
.skip { position: absolute; left: -999px } .skip:focus { left: .5rem; top: .5rem; z-index: 3; background: var(--card); padding: .5rem }
.top { position: sticky; top: 0; z-index: 2; display: flex; align-items: center; gap: 1rem; min-height: 3rem; padding: .25rem 1rem; background: var(--card); border-bottom: 1px solid var(--rule) }
.top .brand { font-weight: 650; color: inherit; text-decoration: none; margin-right: auto; padding: .35rem 0 }
.top .person { color: var(--dim); max-width: 40vw; overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
.pages { display: flex; gap: .25rem; overflow-x: auto; padding: .25rem .75rem; background: var(--card); border-bottom: 1px solid var(--rule) }
.pages p { display: none }
.pages a { padding: .35rem .6rem; border-radius: .375rem; color: inherit; text-decoration: none; white-space: nowrap }
.pages a[aria-current] { background: var(--rule); font-weight: 600 }
main { display: grid; gap: 1rem; padding: 1rem; max-width: 110rem; align-content: start }
main > * { min-width: 0 }
nav.tabs { display: flex; flex-wrap: wrap; gap: .25rem; border-bottom: 1px solid var(--rule) }
.tabs a { padding: .35rem .75rem; color: inherit; text-decoration: none; white-space: nowrap; border-bottom: 2px solid transparent } .tabs a[aria-current] { border-color: var(--accent); font-weight: 600 }
.title { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; justify-content: space-between }
.card { background: var(--card); border: 1px solid var(--rule); border-radius: .5rem; padding: .75rem 1rem; min-width: 0 }
.grid { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)) }
.stack { display: grid; gap: 1rem; min-width: 0 } .stack > * { min-width: 0 }
@media (min-width: 60rem) {
  .shell { display: grid; grid-template-columns: 12rem minmax(0, 1fr) }
  .pages { flex-direction: column; position: sticky; top: 3rem; height: calc(100vh - 3rem); overflow-y: auto; border-bottom: 0; border-right: 1px solid var(--rule) }
  .pages p { display: block; margin: .75rem 0 .1rem; padding: 0 .6rem; color: var(--dim); font-size: .75rem }
  main { padding: 1.25rem 1.5rem 3rem }
}
.table { overflow-x: auto; margin: 0 -1rem -.75rem; padding: 0 1rem; max-height: 80vh }
.table + p { margin: 1.25rem 0 0 }
table { border-collapse: collapse; width: 100% }
caption { text-align: left; font-weight: 600; font-size: 1rem; padding: 0 0 .5rem }
th, td { padding: .4rem 1rem .4rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule) }
tbody tr:last-child > * { border-bottom: 0 }
thead th { position: sticky; top: 0; background: var(--card); color: var(--dim); font-weight: 500; white-space: nowrap; box-shadow: inset 0 -1px var(--rule) }
td { min-width: 5rem } tbody th { min-width: 8rem; font-weight: 500 } td, th { overflow-wrap: break-word } td .button, td button { min-height: 1.5rem; padding: 0 .5rem; font-size: .8125rem } time { white-space: nowrap }
td .wrap { overflow-wrap: anywhere } .key { display: inline-block; min-width: 15rem; overflow-wrap: anywhere } a .key { text-decoration: underline } td .spark { width: 5rem; margin-left: auto } td .bar { min-width: 6rem; margin: .3rem 0 .2rem } th.number, td.number { text-align: right; white-space: nowrap }
thead a { color: inherit } thead [aria-sort] a { color: var(--text); font-weight: 600 }
.pager { display: flex; gap: 1rem; padding-top: .75rem }
.filters { display: flex; flex-wrap: wrap; gap: .5rem .75rem; align-items: end }
.field { display: grid; gap: .25rem; justify-items: start } .stack > .field > :is(input, select) { width: min(100%, 26rem) } .filters .field > :is(input, select) { width: 100% }
.filters label, .field label { display: grid; gap: .15rem; color: var(--dim); font-size: .75rem }
.filters .wide { flex: 1 1 20rem } .filters .wide input { width: 100% }
input, select, textarea, button, .button { font: inherit; color: inherit; min-height: 2rem; padding: .25rem .6rem; border: 1px solid var(--line); border-radius: .375rem; background: var(--card); max-width: 100% } input, select { font-size: .875rem } ::placeholder { color: var(--dim); opacity: .8 }
textarea { width: 100%; min-height: 12rem; font: .8125rem/1.45 ${fonts.code} }
button, .button { cursor: pointer; display: inline-flex; align-items: center; text-decoration: none; white-space: nowrap } .button[aria-current] { background: var(--rule); font-weight: 600 }
button.primary, .button.primary { background: var(--accent); border-color: var(--accent); color: var(--card) }
button.danger { background: var(--bad); border-color: var(--bad); color: var(--card) } a.danger { color: var(--bad); border-color: currentcolor }
.choices { border: 1px solid var(--line); border-radius: .375rem; margin: 0; padding: .5rem .75rem } .choices legend { color: var(--dim); font-size: .75rem } .choices label { display: flex; gap: .5rem; align-items: center; min-height: 1.75rem } .choices input { min-height: 0 }
.actions { display: flex; flex-wrap: wrap; gap: .5rem } form { margin: 0 }
dl.details { display: grid; grid-template-columns: minmax(6rem, max-content) minmax(0, 1fr); gap: .3rem 1.5rem; margin: 0 }
.details + p { margin: .75rem 0 0 } .details dt { color: var(--dim) } .details dd { margin: 0 }
.badge { display: inline-block; padding: 0 .45rem; border: 1px solid var(--line); border-radius: 1rem; font-size: .75rem; white-space: nowrap }
.badge.ok { color: var(--ok); border-color: currentcolor } .badge.warn { color: var(--warn); border-color: currentcolor } .badge.bad { color: var(--bad); border-color: currentcolor }
.copy { min-height: 1.5rem; padding: 0 .4rem; font-size: .75rem; vertical-align: baseline } .copy:not(.ready) { display: none }
.command { display: flex; flex-wrap: wrap; gap: .5rem; align-items: start; padding: .5rem .75rem; background: var(--back); border-radius: .375rem }
pre { margin: 0; white-space: pre-wrap; flex: 1 1 16rem; min-width: 0 }
.code { border: 1px solid var(--rule); border-radius: .375rem; padding: .4rem 0 } .code > div { display: grid; grid-template-columns: 3.5rem minmax(0, 1fr) } .code code { white-space: pre-wrap } .code > :target { background: var(--back) }
.code .no { color: var(--dim); font: .8125rem/1.45 ${fonts.code}; text-align: right; padding-right: .75rem; user-select: none }
.code .note { margin: .15rem .75rem .4rem 3.5rem; border-left: 4px solid var(--line); padding-left: .6rem } .code .note.bad { border-color: var(--bad) } .code .note.warn { border-color: var(--warn) }
.code .removed code { color: var(--bad) } .code .added code { color: var(--ok) } .code .gap { margin: 0 0 0 3.5rem; color: var(--dim) }
.problem, .notice { border-left: 4px solid var(--bad); background: var(--card); padding: .6rem 1rem; border-radius: .25rem }
.problem > :last-child, .notice > :last-child { margin-bottom: 0 }
.notice { border-color: var(--ok) } .problem.warn { border-color: var(--warn) }
.empty { color: var(--dim); padding: .25rem 0 } .empty > :last-child { margin-bottom: 0 }
.bar { display: block; width: 100%; height: .5rem; background: var(--rule); border-radius: .25rem } .bar rect { fill: var(--accent) } .bar.period { min-width: 8rem; margin-top: .4rem } .bar.near rect { fill: var(--warn) } .bar.over rect { fill: var(--bad) }
.spark { display: block; width: 8rem; height: 1.5rem } .spark polyline { fill: none; stroke: var(--accent); stroke-width: 1.5; vector-effect: non-scaling-stroke }
.tiles { display: grid; gap: .75rem; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)) }
.tile { display: grid; gap: .15rem; align-content: start } .tile .value { font-size: 1.375rem; line-height: 1.2; font-weight: 600 } .tile .n { display: flex; justify-content: space-between; align-items: baseline } .tile .unit { font-size: .875rem; font-weight: 400 } .tile .spark { width: 100% }
.tile.bad .value { color: var(--bad) } .tile.warn .value { color: var(--warn) }
${['accent', 'warn', 'dim', 'bad', 'rule'].map((name) => `.color-${name} { color: var(--${name}) }`).join(' ')}
.chart { height: 17rem; overflow: hidden } .traffic { min-height: 40rem }
#region-replicas table, #region-configuration table { table-layout: fixed; min-width: 56rem }
 .uplot, .uplot * { font: inherit } .u-legend th { font-weight: 400 } .u-legend td, .u-legend th { border: 0; padding: 0 .5rem 0 0; min-width: 0 }
.findings { display: grid; align-content: start; gap: .5rem; height: 6rem; overflow-y: auto; margin: 0; padding: 0; list-style: none } .findings li { border-left: 4px solid var(--warn); padding: .1rem 0 .1rem .75rem } .findings li.bad { border-color: var(--bad) } .findings li.ok { border-color: var(--ok) }
[data-stale] { opacity: .55 }
.stale-mark:not(.shown) { visibility: hidden } .stale-mark { color: var(--warn) }
dialog { color: inherit; background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem 1.5rem } dialog::backdrop { background: #0008 }
kbd { font: .75rem ${fonts.code}; border: 1px solid var(--line); border-radius: .25rem; padding: 0 .3rem }
`;
