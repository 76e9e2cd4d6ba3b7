import { createHash } from 'node:crypto';
import { accentColor, type ColorScheme, pageColors } from '../config/page-colors.ts';
import type { Settings } from '../config/settings.ts';
import type { BaseContext } from '../context.ts';
import { textColorOn } from '../templates/colors.ts';
import type { AddRoutes } from './api.ts';

/** `/pages/style.css`: the style sheet of all pages. */
export const addStyleRoute: AddRoutes<BaseContext> = (api, { settings }) => {
  const { css } = stylesheet(settings);
  const options = { schema: { hide: true }, exposeHeadRoute: false };
  api.get('/pages/style.css', options, (_request, reply) =>
    reply
      .type('text/css; charset=utf-8')
      // The URL has the version.
      .headers({
        'cache-control': 'public, max-age=604800',
        'cross-origin-resource-policy': 'same-origin',
        'x-content-type-options': 'nosniff',
      })
      .send(css),
  );
};

/** The style sheet in the colors of the operator. */
export function stylesheet(settings: Accents): { readonly css: string; readonly version: string } {
  const css = `:root { color-scheme: light dark; ${variables('light', settings)} }
@media (prefers-color-scheme: dark) { :root { ${variables('dark', settings)} } }
${rules}`;
  return { css, version: createHash('sha256').update(css).digest('hex').slice(0, 8) };
}

type Accents = Pick<Settings, 'pagesColor' | 'pagesColorDark'>;

function variables(scheme: ColorScheme, settings: Accents): string {
  const brand = accentColor(settings, scheme);
  const all = { ...pageColors[scheme], brand, 'on-brand': textColorOn(brand) };
  return Object.entries(all)
    .map(([name, value]) => `--${name}: ${value}`)
    .join('; ');
}

const rules = `* { box-sizing: border-box }
body { margin: 0; padding: 1rem; background: var(--back); color: var(--text); font: 1rem/1.5 system-ui, sans-serif }
main { max-width: 26rem; margin: 8vh auto 2rem; padding: 2rem; background: var(--card); border-radius: .75rem; box-shadow: 0 1px 3px #0002; overflow-wrap: anywhere }
main.wide { max-width: 40rem; margin-top: 2rem }
h1 { margin: 0 0 1.25rem; font-size: 1.375rem; line-height: 1.25 }
h2 { margin: 0 0 .75rem; font-size: 1.125rem; line-height: 1.25 }
p { margin: 0 0 1rem }
a { color: var(--brand); text-underline-offset: .15em }
small, .hint { color: var(--dim); font-size: .875rem }
section { margin-top: 2rem; padding-top: 1.5rem; border-top: 1px solid color-mix(in srgb, var(--line) 35%, transparent) }
.brand { margin: 0 0 1.5rem; font-weight: 600 }
.brand img { max-width: 100%; vertical-align: middle }
.field { margin-bottom: 1rem }
label, legend { display: block; font-weight: 600; padding: 0 }
.hint { margin: 0 }
select, input:not([type=radio], [type=checkbox], [type=hidden], [hidden]) { width: 100%; min-height: 2.75rem; margin-top: .25rem; padding: .5rem .75rem; border: 1px solid var(--line); border-radius: .5rem; background: var(--card); color: inherit; font: inherit }
input[aria-invalid] { border-color: var(--bad); border-width: 2px }
fieldset { margin: 0 0 1rem; padding: 0; border: 0 }
.choice { margin-top: .5rem; font-weight: 400 }
button, .button { display: flex; justify-content: center; align-items: center; width: 100%; min-height: 2.75rem; padding: .5rem 1rem; border: 1px solid var(--line); border-radius: .5rem; background: transparent; color: inherit; font: inherit; font-weight: 600; text-align: center; text-decoration: none; cursor: pointer }
button { border-color: transparent; background: var(--brand); color: var(--on-brand) }
button.secondary { border-color: var(--line); background: transparent; color: inherit }
button.danger { border-color: var(--bad); background: transparent; color: var(--bad) }
button.link { display: inline; width: auto; min-height: 1.75rem; padding: 0; border: 0; background: none; color: var(--brand); font-weight: 400; text-decoration: underline; text-underline-offset: .15em }
button:hover, .button:hover { filter: brightness(.93) }
.wide button:not(.link), .wide .button { display: inline-flex; width: auto }
:focus-visible { outline: 3px solid var(--text); outline-offset: 2px }
.aside { margin-top: -.5rem; font-size: .875rem }
.after { margin: 1.25rem 0 0 }
.divider { display: flex; align-items: center; gap: .75rem; margin: 1.25rem 0; color: var(--dim); font-size: .875rem }
.divider::before, .divider::after { content: ''; flex: 1; border-top: 1px solid color-mix(in srgb, var(--line) 50%, transparent) }
.summary, .notice { margin-bottom: 1.25rem; padding: .75rem 1rem; border: 1px solid var(--line); border-left: .3rem solid var(--brand); border-radius: .5rem }
.summary { border-color: var(--bad) }
.summary p, .notice p { margin: 0 }
.summary, .summary a { color: var(--bad) }
.ways, .items { margin: 0 0 1rem; padding: 0; list-style: none }
.ways li + li { margin-top: .5rem }
.items > li { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: center; gap: .25rem 1rem; padding: .625rem 0; border-bottom: 1px solid color-mix(in srgb, var(--line) 25%, transparent) }
.items > li:last-child { border-bottom: 0 }
.items > li > :first-child { flex: 1 1 12rem }
.areas { display: flex; flex-wrap: wrap; gap: 0 1.25rem; margin: 0 0 1.5rem; padding: 0; list-style: none }
.areas a { display: inline-block; padding: .25rem 0 }
.areas a[aria-current] { color: inherit; font-weight: 600; text-decoration: none }
.items ul { margin: .25rem 0; padding-left: 1.25rem }
.wide .ways { display: flex; flex-wrap: wrap; gap: .5rem }
.wide .ways li + li { margin: 0 }
form + form, .after + form { margin-top: 1.25rem }
.items form + form { margin-top: 0 }
.items button.link { text-align: start }
.qr svg { display: block; width: 12rem; margin: 0 auto; border-radius: .5rem }
code { font-size: 1rem; letter-spacing: .05em }
@media (max-width: 30rem) { body { padding: 0; background: var(--card) } main, main.wide { margin: 0 auto; padding: 1.5rem 1.25rem; box-shadow: none } .items > li { justify-content: start } .items > li > :first-child { flex-basis: 100% } }
`;
