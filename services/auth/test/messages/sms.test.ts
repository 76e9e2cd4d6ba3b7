import { createLogger } from '@tollgate/kit/logger';
import t from 'tap';
import { readSettings } from '../../src/config/settings.ts';
import type { SmsChannel } from '../../src/messages/sms.ts';
import { createSmsGateway } from '../../src/messages/sms.ts';
import { textMessages } from '../helpers/text-messages.ts';

const silent = createLogger({ level: 'fatal', format: 'json' });

function gatewayOf(variables: Readonly<Record<string, string>>) {
  const env = Object.entries({
    MODE: 'development',
    SITE_URL: 'https://example.com',
    API_EXTERNAL_URL: 'http://localhost:9999',
    DB_DRIVER: 'postgres',
    DB_DATABASE_URL: 'postgres://localhost/none',
    JWT_SECRET: 'a secret for tests, long enough for HS256',
    ...variables,
  }).map(([name, value]) => [`SVC_${name}`, value]);
  const read = readSettings(Object.fromEntries(env));
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  return createSmsGateway(read.settings, { logger: silent });
}

function message(channel: SmsChannel = 'sms') {
  return { to: '4915112345678', code: '123456', channel };
}

t.test('Twilio receives the message with the credentials', async (t) => {
  const texts = await textMessages(t);
  t.same(await gatewayOf(texts.variables).send(message()), { messageId: 'SM1' });
  t.same(texts.texts, [
    {
      path: '/2010-04-01/Accounts/AC1/Messages.json',
      authorization: `Basic ${Buffer.from('AC1:secret').toString('base64')}`,
      form: {
        To: '+4915112345678',
        Channel: 'sms',
        From: '+15005550006',
        Body: 'Your code is 123456',
      },
    },
  ]);
});

t.test('WhatsApp uses prefixed numbers, and a content template if configured', async (t) => {
  const texts = await textMessages(t);
  await gatewayOf(texts.variables).send(message('whatsapp'));
  t.match(texts.texts[0]?.form, {
    To: 'whatsapp:+4915112345678',
    From: 'whatsapp:+15005550006',
    Body: 'Your code is 123456',
  });

  const service = { SMS_TWILIO_CONTENT_SID: 'HX1', SMS_TWILIO_MESSAGE_SERVICE_SID: 'MG1' };
  await gatewayOf({ ...texts.variables, ...service }).send(message('whatsapp'));
  const form = texts.texts[1]?.form ?? {};
  t.match(form, { From: 'MG1', ContentSid: 'HX1', ContentVariables: '{"1":"123456"}' });
  t.notOk('Body' in form);
});

t.test('message that Twilio rejects or cannot deliver is an error with the reason', async (t) => {
  const texts = await textMessages(t);
  const gateway = gatewayOf(texts.variables);
  texts.answer({ status: 400, body: { code: 21211, message: 'invalid number', status: 400 } });
  await t.rejects(gateway.send(message()), { message: /400: invalid number \(21211\)/ });
  texts.answer({ status: 201, body: { sid: 'SM1', status: 'undelivered' } });
  await t.rejects(gateway.send(message()), { message: /undelivered/ });
  texts.answer({ status: 200, body: 'x'.repeat(100_000) });
  await t.rejects(gateway.send(message()), { message: /longer than 65536 bytes/ });
});

t.test(
  'sending without a provider or its credentials fails with the missing settings as detail',
  async (t) => {
    const expected = { code: 'unexpected_failure', message: 'Unable to get SMS provider' };
    await t.rejects(gatewayOf({}).send(message()), { ...expected, detail: 'SVC_SMS_PROVIDER is not set' });
    const incomplete = gatewayOf({ SMS_PROVIDER: 'twilio', SMS_TWILIO_ACCOUNT_SID: 'AC1' });
    await t.rejects(incomplete.send(message()), {
      ...expected,
      detail: 'twilio requires SVC_SMS_TWILIO_AUTH_TOKEN, SVC_SMS_TWILIO_MESSAGE_SERVICE_SID',
    });
  },
);
