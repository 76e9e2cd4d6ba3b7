import { escapeHtml } from '../../domain/escape-html.ts';
import type { MailboxEntry } from '../../ports/mailbox.ts';

const style = `
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem }
  article { border: 1px solid #8888; border-radius: .5rem; margin: 1rem 0; padding: 1rem }
  h2 { font-size: 1.1rem; margin: 0 } p { margin: 0; opacity: .7 }
  iframe { border: 0; width: 100%; height: 16rem; background: #fff; margin-top: 1rem }`;

/** The page that shows mails. What they say is shown in frames that run no script. */
export function mailboxPage(mails: readonly MailboxEntry[]): string {
  const articles =
    mails.map(article).join('\n') || '<p>No mail yet. It is shown here instead of being sent.</p>';
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Mail of development mode</title>
<style>${style}</style>
<h1>Mail</h1>
${articles}
</html>
`;
}

function article({ to, subject, at, html }: MailboxEntry): string {
  // Links open beside the page: the frame itself may go nowhere.
  const content = escapeHtml(`<base target="_blank">${html}`);
  return `<article>
<h2>${escapeHtml(subject)}</h2>
<p>to ${escapeHtml(to)}, ${at.toISOString()}</p>
<iframe sandbox="allow-popups allow-popups-to-escape-sandbox" srcdoc="${content}"></iframe>
</article>`;
}
