import { Registry } from 'prom-client';
import t from 'tap';
import { countMails } from '../../src/messages/smtp.ts';

t.test('mails are counted by kind, and those that failed', async (t) => {
  const registry = new Registry();
  const mailer = countMails(
    {
      send: ({ kind }) =>
        kind === 'EMAIL_CHANGE' ? Promise.reject(new Error('refused')) : Promise.resolve(),
      sendNothing: () => Promise.resolve(),
    },
    registry,
  );
  await mailer.send({ kind: 'MAGIC_LINK', to: 'a@example.com', variables: {} });
  await mailer.sendNothing();
  await t.rejects(mailer.send({ kind: 'EMAIL_CHANGE', to: 'a@example.com', variables: {} }), /refused/);
  const text = await registry.metrics();
  t.match(text, 'global_auth_email_send_operations_total{type="magiclink"} 1');
  t.match(text, 'global_auth_email_send_operations_total{type="email_change"} 1');
  t.match(text, /^global_auth_email_send_errors_total 1$/m);
});
