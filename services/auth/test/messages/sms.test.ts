import { createLogger } from '@tollgate/kit/logger';
import { type EchoedRequest, startJsonServer } from '@tollgate/testkit/echo';
import t from 'tap';
import { readSettings, settingsSpec } from '../../src/config/settings.ts';
import { createSmsGateway } from '../../src/messages/sms.ts';
import type { SmsChannel } from '../../src/messages/sms-gateway.ts';
import { textMessages } from '../helpers/text-messages.ts';

const silent = createLogger({ level: 'fatal', format: 'json' });

/** Gateways that accepted a message. */
const used = new Set<string>();

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
  const gateway = createSmsGateway(read.settings, { logger: silent });
  const send: typeof gateway.send = async (message) => {
    const sent = await gateway.send(message);
    used.add(read.settings.smsProvider);
    return sent;
  };
  return { ...gateway, send };
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

t.test('text is that of the language, or else the one without a language', async (t) => {
  const texts = await textMessages(t);
  const gateway = gatewayOf({
    ...texts.variables,
    SMS_TEMPLATE_DE: 'Ihr Code: {{ .Code }}',
    MFA_PHONE_TEMPLATE_PT_BR: 'O PIN: {{ .Code }}',
  });
  for (const sent of [
    { languages: ['it', 'de-AT'] },
    { languages: ['fr'] },
    { languages: ['pt-BR', 'de'], template: 'mfaPhoneTemplate' },
    { template: 'mfaPhoneTemplate' },
  ] as const)
    await gateway.send({ ...message(), ...sent });
  t.same(
    texts.texts.map(({ form }) => form.Body),
    ['Ihr Code: 123456', 'Your code is 123456', 'O PIN: 123456', 'Your code is 123456'],
  );
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

/** A gateway whose vendor is a local server with one reply. */
async function gatewayWith(
  test: Pick<typeof t, 'teardown'>,
  variables: (url: string) => Readonly<Record<string, string>>,
) {
  const requests: EchoedRequest[] = [];
  let reply: { status: number; body: unknown } = { status: 500, body: {} };
  const server = await startJsonServer((request) => {
    requests.push(request);
    return reply;
  });
  test.teardown(() => server.stop());
  return {
    gateway: gatewayOf(variables(server.url)),
    answer: (status: number, body: unknown) => {
      reply = { status, body };
    },
    requests,
    forms: () => requests.map(({ body }) => Object.fromEntries(new URLSearchParams(body))),
  };
}

t.test('MessageBird accepts or rejects a message', async (t) => {
  const { gateway, answer, requests, forms } = await gatewayWith(t, (url) => ({
    SMS_PROVIDER: 'messagebird',
    SMS_MESSAGEBIRD_URL: url,
    SMS_MESSAGEBIRD_ACCESS_KEY: 'key',
    SMS_MESSAGEBIRD_ORIGINATOR: 'Example',
  }));
  const recipients = { totalCount: 1, totalSentCount: 1, totalDeliveredCount: 0 };
  answer(201, { id: 'e8077d80', originator: 'Example', type: 'sms', recipients });
  t.same(await gateway.send(message()), { messageId: 'e8077d80' });
  t.match(requests, [{ method: 'POST', path: '/messages', headers: { authorization: 'AccessKey key' } }]);
  t.same(forms(), [
    {
      originator: 'Example',
      body: 'Your code is 123456',
      recipients: '4915112345678',
      type: 'sms',
      datacoding: 'unicode',
    },
  ]);
  answer(401, {
    errors: [{ code: 2, description: 'Request not allowed (incorrect access_key)', parameter: 'access_key' }],
  });
  await t.rejects(gateway.send(message()), {
    message: 'MessageBird answered 401: Request not allowed (incorrect access_key) (2)',
  });
  answer(201, { id: 'e8077d80', recipients: { ...recipients, totalSentCount: 0 } });
  await t.rejects(gateway.send(message()), { message: /^MessageBird answered 201: not sent/ });
  answer(502, 'bad gateway');
  await t.rejects(gateway.send(message()), { message: /^MessageBird answered 502/ });
});

t.test('Vonage accepts or rejects a message, with status 200', async (t) => {
  const credentials = {
    SMS_PROVIDER: 'vonage',
    SMS_VONAGE_API_KEY: 'abcd1234',
    SMS_VONAGE_API_SECRET: 'secret',
    SMS_VONAGE_FROM: 'Example',
  };
  let url = '';
  const { gateway, answer, requests, forms } = await gatewayWith(t, (at) => {
    url = at;
    return { ...credentials, SMS_VONAGE_URL: at };
  });
  const accepted = { to: '4915112345678', 'message-id': '0A0000000123ABCD1', status: '0' };
  answer(200, { 'message-count': '1', messages: [accepted] });
  t.same(await gateway.send(message()), { messageId: '0A0000000123ABCD1' });
  t.match(requests, [{ method: 'POST', path: '/sms/json' }]);
  const form = { from: 'Example', to: '4915112345678', api_key: 'abcd1234', api_secret: 'secret' };
  t.same(forms(), [{ ...form, text: 'Your code is 123456' }]);

  const arrow = { ...credentials, SMS_VONAGE_URL: `${url}/`, SMS_TEMPLATE: 'Code → {{ .Code }}' };
  await gatewayOf(arrow).send(message());
  t.same(forms().at(-1), { ...form, text: 'Code → 123456', type: 'unicode' });

  answer(200, { 'message-count': '1', messages: [{ status: '4', 'error-text': 'Bad Credentials' }] });
  await t.rejects(gateway.send(message()), { message: 'Vonage answered 200: Bad Credentials (4)' });
  answer(200, { messages: [] });
  await t.rejects(gateway.send(message()), { message: /^Vonage answered 200: not sent/ });
  answer(429, { messages: [accepted] });
  await t.rejects(gateway.send(message()), { message: /^Vonage answered 429/ });
});

t.test('Textlocal accepts or rejects a message, with status 200', async (t) => {
  const { gateway, answer, requests, forms } = await gatewayWith(t, (url) => ({
    SMS_PROVIDER: 'textlocal',
    SMS_TEXTLOCAL_URL: url,
    SMS_TEXTLOCAL_API_KEY: 'key',
    SMS_TEXTLOCAL_SENDER: 'EXAMPL',
  }));
  answer(200, { batch_id: 1, messages: [{ id: '1151346216', recipient: 4915112345678 }], status: 'success' });
  t.same(await gateway.send(message()), { messageId: '1151346216' });
  t.match(requests, [{ method: 'POST', path: '/send' }]);
  t.same(forms(), [
    { sender: 'EXAMPL', apikey: 'key', message: 'Your code is 123456', numbers: '4915112345678' },
  ]);
  answer(200, { errors: [{ code: 3, message: 'Invalid login details' }], status: 'failure' });
  await t.rejects(gateway.send(message()), {
    message: 'Textlocal answered 200: Invalid login details (3)',
  });
  answer(200, { errors: [{ code: 80, message: 'Invalid template' }], status: 'failure' });
  await t.rejects(gateway.send(message()), {
    message: 'Textlocal answered 200: Invalid template (80), SMS_TEMPLATE is not a registered template',
  });
  answer(200, 'not an object');
  await t.rejects(gateway.send(message()), { message: /^Textlocal answered 200: not sent/ });
});

t.test('gateways without credentials fail at send time', async (t) => {
  for (const [provider, missing] of [
    ['messagebird', /^messagebird requires SVC_SMS_MESSAGEBIRD_ACCESS_KEY, SVC_SMS_MESSAGEBIRD_ORIGINATOR$/],
    ['vonage', /^vonage requires SVC_SMS_VONAGE_API_KEY, SVC_SMS_VONAGE_API_SECRET, SVC_SMS_VONAGE_FROM$/],
    ['textlocal', /^textlocal requires SVC_SMS_TEXTLOCAL_API_KEY, SVC_SMS_TEXTLOCAL_SENDER$/],
  ] as const)
    await t.rejects(gatewayOf({ SMS_PROVIDER: provider }).send(message()), {
      message: 'Unable to get SMS provider',
      detail: missing,
    });
});

t.test('WhatsApp is served by Twilio, the log and the hook only', (t) => {
  const isServed = (variables: Readonly<Record<string, string>>) =>
    gatewayOf(variables).channels.includes('whatsapp');
  for (const SMS_PROVIDER of ['twilio', 'twilio_verify', 'log'])
    t.equal(isServed({ SMS_PROVIDER }), true, SMS_PROVIDER);
  const hook = { HOOK_SEND_SMS_ENABLED: 'true', HOOK_SEND_SMS_URI: 'pg-functions://postgres/public/send' };
  for (const SMS_PROVIDER of ['', 'messagebird', 'vonage', 'textlocal']) {
    t.equal(isServed({ SMS_PROVIDER }), false, SMS_PROVIDER);
    t.equal(isServed({ SMS_PROVIDER, ...hook }), true, `${SMS_PROVIDER} with the hook`);
  }
  t.end();
});

/** It makes the codes itself: twilio-verify.test.ts. */
const withOwnCodes = 'twilio_verify';

t.test('every gateway has sent a message in these tests', (t) => {
  const names = settingsSpec.smsProvider.schema.enum ?? [];
  t.same(new Set([...used, '', 'log', withOwnCodes]), new Set(names));
  t.end();
});
