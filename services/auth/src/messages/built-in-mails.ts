import type { MailKind } from '../i18n/texts/mail-kinds.ts';
import { builtInTexts, type Texts } from '../i18n/texts/texts.ts';
import { textColorOn } from '../templates/colors.ts';

/** The paragraph with the button, which the plain text omits: the URL follows it. */
export const buttonSelector = 'p[data-button]';

const block = 'margin:0 0 16px';

/**
 * The built-in template of a kind of mail. It sets no colors but those of the button, so that mail
 * programs choose readable ones in light and dark mode.
 *
 * @param color of the button, `#rrggbb`
 */
export function builtInMail(kind: MailKind, language: string, color: string): string {
  const texts = builtInTexts[language];
  if (texts === undefined) throw new TypeError(`no texts in ${language}`);
  const { title, text, note } = texts.mails[kind];
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${title}</title>
<style>:root { color-scheme: light dark; supported-color-schemes: light dark }</style>
</head>
<body style="margin:0;padding:24px 16px">
<div role="article" aria-roledescription="email" lang="${language}" style="max-width:480px;margin:0 auto;font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;overflow-wrap:anywhere">
<h1 style="${block};font-size:22px;line-height:1.3">${title}</h1>
<p style="${block}">${text}</p>
${action(texts, kind, color)}
<p style="margin:24px 0 0;font-size:14px">${note ?? texts.report}</p>
</div>
</body>
</html>
`;
}

const code = '<strong style="font-size:22px;letter-spacing:2px">{{ .Token }}</strong>';

/** Link and code, the code only, or nothing. */
function action({ mails, openLink, enterCode }: Texts, kind: MailKind, color: string): string {
  const { button } = mails[kind];
  if (button === undefined) return kind === 'REAUTHENTICATION' ? `<p style="${block}">${code}</p>` : '';
  const style = `display:inline-block;padding:12px 24px;border:1px solid #71717a;border-radius:8px;background:${color};color:${textColorOn(color)};font-weight:600;text-decoration:none`;
  return `<p data-button style="${block}"><a style="${style}" href="{{ .ConfirmationURL }}">${button}</a></p>
<p style="${block}">${openLink}<br><a style="color:inherit" href="{{ .ConfirmationURL }}">{{ .ConfirmationURL }}</a></p>${
    kind === 'ORGANIZATION_INVITE' ? '' : `\n<p style="${block}">${enterCode}<br>${code}</p>`
  }`;
}
