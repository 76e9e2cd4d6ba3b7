import { createLogger } from '@tollgate/kit/logger';
import { Registry } from 'prom-client';
import t from 'tap';
import { readSettings, type Settings } from '../../src/config/settings.ts';
import { mailKinds } from '../../src/i18n/texts/mail-kinds.ts';
import { readMailSources } from '../../src/messages/mail-sources.ts';
import { MailTemplates } from '../../src/messages/mail-templates.ts';
import type { MailMessage } from '../../src/messages/mail-transport.ts';
import { Mailer } from '../../src/messages/mailer.ts';
import { Metrics } from '../../src/metrics.ts';

const logger = createLogger({ level: 'fatal', format: 'json' });

function settingsWith(variables: Readonly<Record<string, string>>): Settings {
  const read = readSettings({
    SVC_MODE: 'development',
    SVC_SITE_URL: 'https://example.com',
    SVC_API_EXTERNAL_URL: 'https://auth.example.com',
    SVC_DB_DRIVER: 'postgres',
    DATABASE_URL: 'postgres://u:p@db/auth',
    SVC_JWT_SECRET: 'secret',
    SVC_SMTP_ADMIN_EMAIL: 'auth@example.com',
    ...variables,
  });
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  return read.settings;
}

function startMailer(
  variables: Readonly<Record<string, string>>,
  deliver: (message: MailMessage) => Promise<void>,
) {
  const settings = settingsWith(variables);
  const registry = new Registry();
  const metrics = new Metrics(registry);
  const sources = readMailSources(settings);
  const templates = new MailTemplates({
    settings,
    sources: [...sources.values()].flat(),
    fetch: async ({ pathname }) => `${pathname} to {{ .SendingTo }}`,
    metrics,
    logger,
    nowMs: Date.now,
  });
  const transport = { deliver, deliverNothing: async () => undefined };
  return { mailer: new Mailer({ settings, sources, templates, transport, metrics, logger }), registry };
}

t.test('every kind of mail uses its configured subject and template', async (t) => {
  const delivered: string[] = [];
  const variables = Object.fromEntries(
    mailKinds.flatMap((kind) => [
      [`SVC_MAILER_SUBJECTS_${kind}`, `${kind} for {{ .Email }}`],
      [`SVC_MAILER_TEMPLATES_${kind}`, `/mails/${kind}`],
    ]),
  );
  const { mailer, registry } = startMailer(
    variables,
    async ({ subject, html }) => void delivered.push(`${subject}: ${html}`),
  );
  const values = { Email: 'ada@example.com', SendingTo: 'ada@example.org' };
  for (const kind of mailKinds)
    await mailer.send({ kind, to: values.SendingTo, languages: [], variables: values });
  t.same(
    delivered,
    mailKinds.map((kind) => `${kind} for ada@example.com: /mails/${kind} to ada@example.org`),
  );
  t.notMatch(await registry.metrics(), /^auth_mail_template_failures_total.* [1-9]/m, 'no failure');
});

t.test('subject and template are in one language', async (t) => {
  for (const [variables, language, expected] of [
    [{}, 'de', /^Sie wurden eingeladen: .*<html lang="de">/s],
    [{ SVC_MAILER_LANGUAGES: 'en' }, 'de', /^You have been invited: .*<html lang="en">/s],
    [{ SVC_MAILER_TEMPLATES_INVITE: '/any' }, 'de', /^You have been invited: \/any to /],
    [{ SVC_MAILER_TEMPLATES_INVITE_DE: '/de' }, 'de-AT', /^Sie wurden eingeladen: \/de to /],
    [{ SVC_MAILER_TEMPLATES_INVITE_DE: '/de' }, 'fr', /^Vous avez reçu une invitation: .*<html lang="fr">/s],
    [
      { SVC_MAILER_TEMPLATES_INVITE: '/any', SVC_MAILER_SUBJECTS_INVITE_IT: 'Ciao' },
      'it',
      /^Ciao: \/any to /,
    ],
    [{ SVC_MAILER_DEFAULT_LANGUAGE: 'it' }, 'it', /^You have been invited: .*<html lang="en">/s],
  ] as const) {
    const delivered: string[] = [];
    const { mailer } = startMailer(
      variables,
      async ({ subject, html }) => void delivered.push(`${subject}: ${html}`),
    );
    await mailer.send({ kind: 'INVITE', to: 'a@example.com', languages: [language], variables: {} });
    t.match(delivered[0], expected, `${language} with ${JSON.stringify(variables)}`);
  }
});

t.test('English subjects are those of GoTrue, and of two mails that it does not have', async (t) => {
  t.same(
    mailKinds.map((kind) => settingsWith({})[`mailSubject:${kind}`]),
    [
      'You have been invited',
      'You have been invited to {{ .OrganizationName }}',
      'Confirm Your Signup',
      'Reset Your Password',
      'Your Magic Link',
      'Confirm Email Change',
      'Confirm reauthentication',
      'Your password has been changed',
      'Your email address has been changed',
      'Your phone number has been changed',
      'A new identity has been linked',
      'An identity has been unlinked',
      'A new MFA factor has been enrolled',
      'An MFA factor has been unenrolled',
      'Your second factor was guessed wrongly too often',
    ],
  );
});

t.test('mails are counted by type, and failures are counted', async (t) => {
  const { mailer, registry } = startMailer({}, ({ kind }) =>
    kind === 'EMAIL_CHANGE' ? Promise.reject(new Error('refused')) : Promise.resolve(),
  );
  await mailer.send({ kind: 'MAGIC_LINK', to: 'a@example.com', languages: [], variables: {} });
  await mailer.sendNothing();
  await t.rejects(
    mailer.send({ kind: 'EMAIL_CHANGE', to: 'a@example.com', languages: [], variables: {} }),
    /refused/,
  );
  const text = await registry.metrics();
  t.match(text, 'global_auth_email_send_operations_total{type="magiclink"} 1');
  t.match(text, 'global_auth_email_send_operations_total{type="email_change"} 1');
  t.match(text, /^global_auth_email_send_errors_total 1$/m);
});
