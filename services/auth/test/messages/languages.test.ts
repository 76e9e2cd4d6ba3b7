import { type ParserError, parse } from 'parse5';
import t from 'tap';
import { mailKinds } from '../../src/i18n/texts/mail-kinds.ts';
import { builtInTexts } from '../../src/i18n/texts/texts.ts';
import { builtInMail } from '../../src/messages/built-in-mails.ts';
import { parseTemplate } from '../../src/templates/template.ts';
import { adminToken } from '../helpers/admin.ts';
import { signUp } from '../helpers/auth-server.ts';
import { codeIn, linkIn, startMailingServer } from '../helpers/mail-server.ts';

const values = {
  ConfirmationURL: 'https://auth.example.com/verify?token=a&type=signup',
  SiteURL: 'https://example.com',
  Token: '123456',
  Email: 'ada@example.com',
  NewEmail: 'new@example.com',
  OldEmail: 'old@example.com',
  Phone: '4915112345678',
  OldPhone: '4915187654321',
  Provider: 'github',
  FactorType: 'totp',
};

for (const [language, { mails }] of Object.entries(builtInTexts))
  t.test(`built-in mails in ${language} are valid HTML with all values`, async (t) => {
    for (const kind of mailKinds) {
      const html = parseTemplate(builtInMail(kind, language, '#1d4ed8'), 'html').render(values);
      const problems: string[] = [];
      parse(html, { onParseError: ({ code }: ParserError) => void problems.push(code) });
      t.same(problems, [], kind);
      t.match(html, `<html lang="${language}">`);
      t.notMatch(html, /\{\{|no value|ZgotmplZ|<img|undefined/, kind);
      const isNotification = kind.endsWith('_NOTIFICATION');
      const isLinked = !isNotification && kind !== 'REAUTHENTICATION';
      const url = values.ConfirmationURL.replaceAll('&', '&amp;');
      t.equal(html.split(`href="${url}"`).length - 1, isLinked ? 2 : 0, kind);
      const hasCode = !isNotification && kind !== 'ORGANIZATION_INVITE';
      t.equal(html.includes('>123456</strong>'), hasCode, kind);
      t.equal(html.includes(values.SiteURL), kind !== 'REAUTHENTICATION', kind);
      const named = /^(EMAIL|PHONE)_CHANGED/.exec(kind)?.[1];
      if (named === 'EMAIL') t.match(html, /old@example\.com.*ada@example\.com/);
      if (named === 'PHONE') t.match(html, /4915187654321.*4915112345678/);
      if (kind === 'EMAIL_CHANGE') t.match(html, /ada@example\.com.*new@example\.com/);
      t.not(mails[kind].subject, '');
    }
  });

const { server: german, smtp: germanMails } = await startMailingServer(t, {
  MAILER_AUTOCONFIRM: 'true',
  MAILER_DEFAULT_LANGUAGE: 'de',
  MAILER_LANGUAGES: 'es,fr',
  MAILER_SAVE_LOCALE_ENABLED: 'true',
  MAILER_SUBJECTS_MAGIC_LINK: 'Willkommen',
  MAILER_SUBJECTS_MAGIC_LINK_PT_BR: 'Oi, {{ .Email }}',
  MAILER_NOTIFICATIONS_PASSWORD_CHANGED_ENABLED: 'true',
  SMTP_MAX_FREQUENCY: '0s',
  RATE_LIMIT_EMAIL_SENT: '100',
});
const password = 'correct horse';

/** The subject of the mail to an address that a request sends. */
async function subjectOf(
  method: string,
  path: string,
  { email, ...options }: Parameters<typeof german.call>[2] & { email: string; language: string },
): Promise<string> {
  const before = germanMails.mails().filter(({ to }) => to.includes(email)).length;
  const headers = { 'accept-language': options.language };
  await german.call(method, path, { body: { email }, ...options, headers });
  return (await germanMails.mailTo(email, before + 1)).subject;
}

t.test('mail is in the language of the request, with HTML and text', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const email = 'ada@example.com';
  const headers = { 'accept-language': 'pt-BR,pt;q=0.9' };
  const signedUp = await server.call('POST', '/signup', { headers, body: { email, password } });
  t.notMatch(signedUp.text, /locale|pt-BR/, 'not saved by default');
  const mail = await smtp.mailTo(email);
  const text = mail.text.replaceAll('\r', '');
  t.equal(mail.subject, 'Confirme seu cadastro');
  t.match(mail.html, '<html lang="pt">');
  t.match(text, /^Confirme seu endereço de e-mail\n\nVocê se cadastrou em .*\.\n\nSe o botão não/);
  t.equal(text.split(linkIn(mail).href).length, 2, 'the link is in the text once');
  t.match(text, codeIn(mail));
  t.notMatch(text, /<|&amp;/);

  await server.call('POST', '/recover', { headers: { 'accept-language': 'ja' }, body: { email } });
  const recovery = await smtp.mailTo(email, 2);
  t.equal(recovery.subject, 'パスワードの再設定');
  t.match(recovery.raw, /^Subject: =\?UTF-8\?B\?[\w+/=]+\?=\r$/m, 'the header is ASCII');
});

t.test('locale of the user precedes the language of the request', async (t) => {
  const email = 'eve@example.com';
  const { accessToken: token } = await signUp(german, { email, data: { locale: 'fr_CA' } });
  const language = 'es';
  t.equal(await subjectOf('POST', '/recover', { email, language }), 'Réinitialisez votre mot de passe');
  await german.call('PUT', '/user', { token, body: { data: { locale: 'en' } } });
  t.equal(await subjectOf('POST', '/recover', { email, language }), 'Restablece tu contraseña');
  const body = { password: 'battery staple' };
  t.equal(await subjectOf('PUT', '/user', { email, language, token, body }), 'Se ha cambiado tu contraseña');
});

t.test('language of an administrator does not apply to the user', async (t) => {
  const token = adminToken();
  for (const [email, data, subject] of [
    ['guest@example.com', undefined, 'Sie wurden eingeladen'],
    ['invitado@example.com', { locale: 'es-MX' }, 'Has recibido una invitación'],
  ] as const)
    t.equal(
      await subjectOf('POST', '/invite', { email, language: 'fr', token, body: { email, data } }),
      subject,
    );
});

t.test('settings for a language precede those without, which are for all others', async (t) => {
  const email = 'ada@example.com';
  await signUp(german, { email });
  for (const [path, language, subject] of [
    ['/otp', 'fr', 'Willkommen'],
    ['/otp', 'pt-br', 'Oi, ada@example.com'],
    ['/otp', 'pt', 'Willkommen'],
    ['/recover', 'fr', 'Réinitialisez votre mot de passe'],
    ['/recover', 'ja', 'Setzen Sie Ihr Passwort zurück'],
  ] as const)
    t.equal(await subjectOf('POST', path, { email, language }), subject, `${path} ${language}`);
});

t.test('with MAILER_SAVE_LOCALE_ENABLED the language of a sign-up is saved if none was sent', async (t) => {
  const headers = { 'accept-language': 'de-CH,en;q=0.5' };
  for (const [name, data, locale] of [
    ['none', undefined, 'de-CH'],
    ['given', { locale: 'fr' }, 'fr'],
    ['full', { name: 'n'.repeat(4070) }, undefined],
  ] as const) {
    const body = { email: `${name}@example.com`, password, data };
    const answer = await german.call('POST', '/signup', { headers, body });
    const user = answer.body.user as { user_metadata: Readonly<Record<string, unknown>> }; // checked next
    t.equal(user.user_metadata.locale, locale);
  }
});
