import { createLogger } from '@tollgate/kit/logger';
import t from 'tap';
import { mailKinds } from '../../src/config/mail.ts';
import { readSettings } from '../../src/config/settings.ts';
import { createMailTemplates } from '../../src/messages/mail-templates.ts';
import { createTemplateMailer } from '../../src/messages/mailer.ts';

const logger = createLogger({ level: 'fatal', format: 'json' });

t.test('every kind of mail has the subject and the template of its settings', async (t) => {
  const read = readSettings({
    SVC_MODE: 'development',
    SVC_SITE_URL: 'https://example.com',
    SVC_API_EXTERNAL_URL: 'https://auth.example.com',
    SVC_DB_DRIVER: 'postgres',
    DATABASE_URL: 'postgres://u:p@db/auth',
    SVC_JWT_SECRET: 'secret',
    SVC_SMTP_ADMIN_EMAIL: 'auth@example.com',
    ...Object.fromEntries(
      mailKinds.flatMap((kind) => [
        [`SVC_MAILER_SUBJECTS_${kind}`, `${kind} for {{ .Email }}`],
        [`SVC_MAILER_TEMPLATES_${kind}`, `/mails/${kind}`],
      ]),
    ),
  });
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  const { settings } = read;
  const delivered: string[] = [];
  const mailer = createTemplateMailer({
    settings,
    templates: createMailTemplates({
      settings,
      fetchText: async ({ pathname }) => `${pathname} to {{ .SendingTo }}`,
      logger,
      nowMs: Date.now,
      countFailure: () => t.fail('no failure'),
    }),
    transport: {
      deliver: async ({ subject, html }) => void delivered.push(`${subject}: ${html}`),
      deliverNothing: async () => undefined,
    },
    logger,
    countFailure: () => t.fail('no failure'),
  });
  const variables = { Email: 'ada@example.com', SendingTo: 'ada@example.org' };
  for (const kind of mailKinds) await mailer.send({ kind, to: variables.SendingTo, variables });
  t.same(
    delivered,
    mailKinds.map((kind) => `${kind} for ada@example.com: /mails/${kind} to ada@example.org`),
  );
});
