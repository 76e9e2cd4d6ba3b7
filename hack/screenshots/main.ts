// make screenshots: starts the platform with users, limits and traffic, and makes a picture of each
// page of the console for the documentation.
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createLimiterClient, unwrap } from '@tollgate/admin-clients/clients';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { type ChromiumPage, findChromium, startChromium } from '@tollgate/testkit/chromium';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { consolePart, consoleUrl, newAdministrator, signInSettings } from '../../cli/src/up/parts.ts';
import { Platform } from '../../cli/src/up/platform.ts';
import { areas } from '../../services/console/src/pages/registry.ts';
import { signInByFetch } from '../../services/console/test/support/fetch-session.ts';
import { choosePorts, type Ports } from '../demo/options.ts';
import { createParts, StartOutput, shopPart } from '../demo/parts.ts';
import { candidate, writeManifests, writeMistake } from './policies.ts';
import { type Caller, createRecords, type Records } from './records.ts';

const { values: options } = parseArgs({
  options: {
    /** PNG for looking at them. */
    format: { type: 'string', default: 'webp' },
    folder: { type: 'string', default: join(import.meta.dirname, '../../docs/images/console') },
    /** How long the traffic lasts before the pictures are made. */
    seconds: { type: 'string', default: '150' },
    only: { type: 'string', default: '' },
  },
});

const size = { width: 1280, height: 800 };

await using cleanup = new AsyncDisposableStack();
const log = (text: string) => process.stderr.write(text);
const stop = new AbortController();
process.once('SIGINT', () => stop.abort());

const folder = temporaryFolder();
cleanup.defer(folder.remove);
const policies = join(folder.path, 'policies');
writeManifests(policies);
const ports = await choosePorts();
const gateway = `http://127.0.0.1:${ports.envoy}`;
const administrator = newAdministrator();
const jwtSecret = randomBytes(32).toString('base64url');
const limiterToken = randomBytes(32).toString('base64url');
const platformOptions = {
  ...{ ports, folder: folder.path, policiesFolder: policies, jwtSecret, limiterToken },
  auth: {
    externalUrl: `${gateway}/auth`,
    settings: {
      ...{ SVC_SITE_URL: gateway, SVC_API_KEYS_ENABLED: 'true', SVC_ORGANIZATIONS_ENABLED: 'true' },
      ...{ SVC_EVENT_WEBHOOKS_ENABLED: 'true', SVC_EVENT_WEBHOOK_PRIVATE_HOSTS: '127.0.0.1' },
      ...signInSettings(ports),
    },
  },
};
const parts = [
  ...(await createParts(platformOptions, shopPart(platformOptions))),
  consolePart(platformOptions, administrator),
];
const platform = await Platform.start(parts, stop.signal, new StartOutput(log));
cleanup.defer(() => platform.stop());

const authUrl = `http://127.0.0.1:${ports.authHttp}`;
const records = await createRecords(authUrl, jwtSecret);
writeMistake(policies);
const traffic = sendTraffic(records.callers, stop.signal);
cleanup.defer(async () => {
  stop.abort();
  await traffic;
});
log(`sending traffic for ${options.seconds} s\n`);
await delay(Number(options.seconds) * 1000, undefined, { signal: stop.signal });
await overrideLimit(ports, records.userId);
const session = await signInByFetch({
  consoleUrl: consoleUrl(ports),
  authUrl: `${gateway}/auth`,
  ...administrator,
});
const chromium = await startChromium(String(findChromium()));
cleanup.defer(chromium.stop);
await takePictures(await chromium.newPage(), pictures(records));

/** The first page of each area, and pages of one thing. */
function pictures({ userId, organizationId }: Records): Readonly<Record<string, string>> {
  const first = areas.map(
    ({ name, path }) => [name, name === 'overview' ? `${path}?range=5m` : path] as const,
  );
  const counter = new URLSearchParams({
    domain: 'policy/shop/orders',
    descriptor: `limit=per-user,plan=pro,user_id=${userId}`,
  });
  const url = new URLSearchParams({ url: `${gateway}/orders`, as: `user:${userId}` });
  return {
    ...Object.fromEntries(first),
    explain: `/explain?${url}`,
    counter: `/limits/counter?${counter}`,
    refusals: '/limits/refusals',
    trial: '/limits/trial',
    'signing-keys': '/settings/keys',
    policy: '/policies/AccessPolicy/shop/payments',
    user: `/users/${userId}`,
    organization: `/organizations/${organizationId}`,
  };
}

async function takePictures(page: ChromiumPage, paths: Readonly<Record<string, string>>): Promise<void> {
  const { folder: target, format, only } = options;
  mkdirSync(target, { recursive: true });
  const [name = '', value = ''] = session.cookie.split('=');
  const cookie = { name, value, url: consoleUrl(ports), httpOnly: true, sameSite: 'Lax' };
  await page.send('Network.setCookie', cookie);
  await page.send('Emulation.setScrollbarsHidden', { hidden: true });
  await page.send('Emulation.setDeviceMetricsOverride', { ...size, deviceScaleFactor: 1, mobile: false });
  for (const [picture, path] of Object.entries(paths).filter(([one]) => one.includes(only)))
    for (const scheme of ['light', 'dark']) {
      const features = [{ name: 'prefers-color-scheme', value: scheme }];
      await page.send('Emulation.setEmulatedMedia', { features });
      await page.open(consoleUrl(ports) + path);
      if (picture === 'what-if') await page.submit('/what-if', { yaml: candidate });
      const isDrawn = `[...document.querySelectorAll('[data-chart]')].every((one) => one.querySelector('canvas'))`;
      await awaitUntil(async () => (await page.evaluate(isDrawn)) === true, { what: 'the charts' });
      const image = { format, ...(format === 'webp' && { quality: 60 }) };
      const { data } = await page.send('Page.captureScreenshot', image);
      writeFileSync(join(target, `${picture}-${scheme}.${format}`), Buffer.from(String(data), 'base64'));
      log(`${picture}-${scheme}\n`);
    }
}

/** Sends requests of all callers until the signal aborts. */
async function sendTraffic(callers: readonly Caller[], signal: AbortSignal): Promise<void> {
  const send = async (authorization: string) => {
    const headers: Record<string, string> = authorization === '' ? {} : { authorization };
    const response = await fetch(`${gateway}/orders`, { headers, signal });
    await response.arrayBuffer();
  };
  const all = [...callers.filter(({ perMinute }) => perMinute > 0), { perMinute: 8, authorization: '' }];
  const loops = all.map(async ({ perMinute, authorization }) => {
    while (!signal.aborted) {
      await send(authorization);
      await delay((60_000 / perMinute) * (0.5 + Math.random()), undefined, { signal });
    }
  });
  // The signal ends them.
  await Promise.allSettled(loops);
}

async function overrideLimit({ limiterAdmin }: Ports, userId: string): Promise<void> {
  const entries = [
    { key: 'limit', value: 'per-user' },
    { key: 'plan', value: 'pro' },
    { key: 'user_id', value: userId },
  ];
  const url = `http://127.0.0.1:${limiterAdmin}`;
  const client = createLimiterClient({ url, token: limiterToken, timeoutMs: 20_000 });
  const body = {
    ...{ domain: 'policy/shop/orders', descriptors: [{ entries }] },
    ...{ requestsPerUnit: 1200, ttlSeconds: 7200, reason: 'Import of the spring catalogue' },
  };
  await unwrap(client.PUT('/v1/overrides', { body }));
}
