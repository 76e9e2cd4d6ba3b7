import { createHash } from 'node:crypto';
import { colorVariables, fonts } from './design-tokens.ts';
import { type Html, html, trustedHtml } from './html.ts';

/** Look of the pages for operators, in all services. */
const style = `
:root { color-scheme: light dark; ${colorVariables()} }
body { background: var(--back); color: var(--text); font: 15px/1.5 ${fonts.text}; margin: 0 auto; max-width: 80rem; padding: 1rem 1.5rem 4rem; }
h1 { font-size: 1.4rem; margin: 0 0 .5rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0; }
dt, .dim { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
.table { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--rule); padding: .35rem .8rem .35rem 0; text-align: left; vertical-align: top; }
th { color: var(--dim); font-weight: 500; white-space: nowrap; } td { overflow-wrap: anywhere; }
code, .message { font: 13px/1.45 ${fonts.code}; } .message { max-width: 60ch; white-space: pre-wrap; }
.True { color: var(--ok); } .False { color: var(--bad); } .Unknown, .Pending { color: var(--warn); }
.notice { border-left: 4px solid var(--bad); margin: 1rem 0; padding: .3rem 0 .3rem .8rem; }
a { color: var(--accent); }
input, button, textarea { font: inherit; color: inherit; padding: .2rem .5rem; background: var(--card); border: 1px solid var(--line); border-radius: .375rem; }
.fields { display: grid; grid-template-columns: max-content 1fr; gap: .4rem 1rem; max-width: 50rem; margin: 0 0 .6rem; }
`;

/** Allows only the style of these pages: no scripts, no other origins. */
export const contentSecurityPolicy =
  `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; ` +
  "form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/** A page for operators: one document, no scripts. */
export function operatorPage(title: string, content: Html): string {
  return html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title>
<style>${trustedHtml(style)}</style></head>
<body>
<h1>${title}</h1>
${content}
</body>
</html>
`.toString();
}
