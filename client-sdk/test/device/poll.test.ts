import t from 'tap';
import { Client } from '../../src/client.ts';
import { type DevicePollEvent, pollDeviceEvents } from '../../src/device/device.ts';

type Answer = 'token' | 'down' | Response;

function refusal(error: string, status = 400, headers: Record<string, string> = {}): Response {
  return Response.json({ error }, { status, headers });
}

function makePolling(
  answers: Answer[],
  { intervalSeconds = 5, lifetimeSeconds = 600, correctionSeconds = 0 } = {},
) {
  const clock = { now: 1_800_000_000 };
  const waits: number[] = [];
  const bodies: unknown[] = [];
  const controller = new AbortController();
  const client = new Client({
    clientId: 'tv',
    clientAuth: 'none',
    site: 'https://as.test',
    now: () => clock.now,
    async fetch(_url, init) {
      bodies.push(init.body);
      const answer = answers.shift() ?? refusal('authorization_pending');
      if (answer === 'down') throw new TypeError('fetch failed');
      return answer === 'token' ? Response.json({ access_token: 'a', token_type: 'Bearer' }) : answer;
    },
  });
  const device = { deviceCode: 'd', userCode: 'u', verificationUri: 'https://as.test/device' };
  const events = pollDeviceEvents(
    client,
    { ...device, intervalSeconds, expiresAt: clock.now + lifetimeSeconds },
    {
      signal: controller.signal,
      async sleep(delayMs, options) {
        options?.signal?.throwIfAborted();
        waits.push(delayMs / 1000);
        clock.now += delayMs / 1000 + correctionSeconds;
      },
    },
  );
  return { events, waits, bodies, controller };
}

async function collect(events: AsyncGenerator<DevicePollEvent<unknown>>): Promise<string[]> {
  const types: string[] = [];
  for await (const event of events) types.push(event.type);
  return types;
}

t.test('polling waits the interval before each poll and ends with the token', async (t) => {
  const { events, waits, bodies } = makePolling([
    refusal('authorization_pending'),
    refusal('authorization_pending'),
    'token',
  ]);
  t.same(await collect(events), ['waiting', 'waiting', 'token']);
  t.match(
    bodies[2],
    'grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&device_code=d&client_id=tv',
  );
  t.same(waits, [5, 5, 5]);
});

t.test('polls of a stored authorization are at least a second apart', async (t) => {
  const { events, waits } = makePolling([refusal('authorization_pending'), 'token'], { intervalSeconds: 0 });
  await collect(events);
  t.same(waits, [1, 1]);
});

t.test('slow_down adds five seconds permanently', async (t) => {
  const { events, waits } = makePolling([
    refusal('slow_down'),
    refusal('slow_down'),
    refusal('authorization_pending'),
    'token',
  ]);
  await collect(events);
  t.same(waits, [5, 10, 15, 15]);
});

t.test('an unreachable server is polled with backoff of up to a minute', async (t) => {
  const { events, waits } = makePolling(['down', 'down', 'down', 'down', 'down', 'token']);
  t.same(await collect(events), [...Array<string>(5).fill('unreachable'), 'token']);
  t.same(waits, [5, 10, 20, 40, 60, 60]);
});

t.test('an interval longer than the backoff is kept', async (t) => {
  const { events, waits } = makePolling(['down', 'token'], { intervalSeconds: 90 });
  await collect(events);
  t.same(waits, [90, 90]);
});

t.test('a busy server is polled after its Retry-After', async (t) => {
  const { events, waits } = makePolling([
    refusal('temporarily_unavailable', 503, { 'retry-after': '30' }),
    'token',
  ]);
  t.same(await collect(events), ['unreachable', 'token']);
  t.same(waits, [5, 30]);
});

t.test('access_denied and other errors end polling', async (t) => {
  for (const code of ['access_denied', 'expired_token', 'invalid_client']) {
    const { events } = makePolling([refusal('authorization_pending'), refusal(code), 'token']);
    await t.rejects(collect(events), { name: 'TokenResponseError', code });
  }
});

t.test('polling ends at the expiry of the device code', async (t) => {
  const { events, waits } = makePolling([], { lifetimeSeconds: 13 });
  await t.rejects(collect(events), { name: 'TokenUnavailableError', message: /start the device flow again/ });
  t.same(waits, [5, 5]);
});

t.test('a clock that is corrected while the user signs in does not change the lifetime', async (t) => {
  for (const correctionSeconds of [1e9, -1e6]) {
    const { events, waits } = makePolling([], { lifetimeSeconds: 13, correctionSeconds });
    await t.rejects(collect(events), { name: 'TokenUnavailableError' });
    t.same(waits, [5, 5]);
  }
});

t.test('an aborted signal ends the polling with its reason as cause', async (t) => {
  const { events, controller } = makePolling([]);
  const reason = new Error('the user left');
  await events.next();
  controller.abort(reason);
  await t.rejects(events.next(), { name: 'AbortError', cause: reason });
});

t.test('breaking out of the loop stops polling', async (t) => {
  const { events, waits } = makePolling([]);
  for await (const event of events) {
    t.equal(event.type, 'waiting');
    break;
  }
  t.same(await events.next(), { value: undefined, done: true });
  t.equal(waits.length, 1);
});
