import { readFileSync } from 'node:fs';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { type Certificates, makeCertificates } from '@tollgate/testkit/certificates';
import { type Chromium, type ChromiumPage, findChromium, startChromium } from '@tollgate/testkit/chromium';
import { startEcho } from '@tollgate/testkit/echo';
import { addressesIn, startTextProxy, textProxies, textProxyIsMissing } from '@tollgate/testkit/text-proxies';
import { loadAll } from 'js-yaml';
import type { Test } from 'tap';
import type { AuthServer } from './auth-server.ts';
import { type AuthzEnvoy, startAuthzEnvoy } from './authz-envoy.ts';

const chromiumPath = findChromium();
if (chromiumPath instanceof Error && process.env.CI === 'true') throw chromiumPath;
/** The reason to skip tests in a browser. */
export const chromiumIsMissing = chromiumPath instanceof Error ? `left out: ${chromiumPath.message}` : false;

/** Applications by their gateways. */
export const apps = {
  'Envoy over gRPC': 'app.example.com',
  'another application': 'one.apps.example.com',
  'Envoy over HTTP': 'http.apps.example.com',
  caddy: 'caddy.apps.example.com',
  nginx: 'nginx.apps.example.com',
} as const;

/** The options of Envoy over HTTP that docs/browsers.md names. */
const browserHeaders = {
  allowedHeaders: [
    ...['cookie', 'accept', 'accept-language', 'user-agent', 'origin', 'upgrade'].map((exact) => ({ exact })),
    { prefix: 'sec-fetch-' },
  ],
  authorizationResponse: {
    allowed_upstream_headers: { patterns: [{ prefix: 'x-auth-' }, { exact: 'cookie' }] },
  },
};

/**
 * Starts a Chromium in front of gateways of all kinds.
 *
 * @param forwarded a replica that takes the checks of Caddy and nginx
 */
export async function startBrowser(
  t: Test,
  server: AuthServer,
  forwarded: AuthServer,
): Promise<{ readonly chromium: Chromium; readonly envoy: AuthzEnvoy }> {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const certificate = certificates.server;
  const port = Number(new URL(server.url).port);
  const [grpc, http, caddy, nginx] = await Promise.all([
    startAuthzEnvoy(t, {
      ...{ variant: 'grpc', port: server.extAuthz.grpc, certificate },
      api: { host: 'auth.example.com', port },
    }),
    startAuthzEnvoy(t, { variant: 'http', port: server.extAuthz.http, certificate, ...browserHeaders }),
    ...(['caddy', 'nginx'] as const).map((name) => startExample(t, name, { forwarded, certificates })),
  ]);
  const fronts: Readonly<Record<string, { readonly url: string } | undefined>> = {
    ...{ 'auth.example.com': grpc, 'evil.test': grpc },
    ...{ [apps['Envoy over gRPC']]: grpc, [apps['another application']]: grpc },
    ...{ [apps['Envoy over HTTP']]: http, [apps.caddy]: caddy, [apps.nginx]: nginx },
  };
  const hosts = Object.entries(fronts).flatMap(([host, front]) =>
    front === undefined ? [] : [[`${host}:443`, `127.0.0.1:${new URL(front.url).port}`]],
  );
  const chromium = await startChromium(String(chromiumPath), Object.fromEntries(hosts));
  t.teardown(() => chromium.stop());
  return { chromium, envoy: grpc };
}

/** The proxy of an example, with an application that echoes requests. */
async function startExample(
  t: Test,
  name: 'caddy' | 'nginx',
  { forwarded, certificates }: { readonly forwarded: AuthServer; readonly certificates: Certificates },
): Promise<{ readonly url: string } | undefined> {
  if (textProxyIsMissing(name)) return undefined;
  const echo = await startEcho();
  t.teardown(echo.stop);
  const path = `${import.meta.dirname}/../../../../examples/${name}/proxy.yaml`;
  const [configMap] = loadAll(readFileSync(path, 'utf8'));
  // Parsed boundary: the ConfigMap of the example, which other tests apply.
  const { data } = configMap as { readonly data: Readonly<Record<string, string>> };
  const config = data[textProxies[name].key] ?? '';
  const ports = addressesIn(config).map(
    (address) => [address, address.endsWith(':9003') ? forwarded.extAuthz.http : echo.port] as const,
  );
  const certificate = certificates.server;
  return { url: await startTextProxy(t, name, { config, ports: new Map(ports), certificate }) };
}

/** Waits until a page whose URL starts with `start` has loaded; others may have come before. */
export async function arrive(page: ChromiumPage, start: string): Promise<void> {
  const isThere = async () => {
    const state = `location.href.startsWith(${JSON.stringify(start)}) && document.readyState === 'complete'`;
    return (await page.evaluate(state).catch(() => false)) === true;
  };
  await awaitUntil(isThere, { what: start });
}

/** Opens a URL, and waits until a page whose URL starts with `start` has loaded. */
export async function open(page: ChromiumPage, url: string, start: string = url): Promise<void> {
  await page.send('Page.navigate', { url });
  await arrive(page, start);
}

/** Signs in at the sign-in page, and waits for a page whose URL starts with `start`. */
export async function signInAs(page: ChromiumPage, email: string, start: string): Promise<void> {
  await page.evaluate(`document.querySelector('[name=identifier]').value = ${JSON.stringify(email)}`);
  await page.evaluate(`document.querySelector('[name=password]').value = 'correct horse'`);
  await page.evaluate(`document.querySelector('[name=password]').form.requestSubmit()`);
  await arrive(page, start);
}

/** Submits a form, and returns the text of the page that follows, at `start`. */
export async function submitForm(
  page: ChromiumPage,
  target: string,
  start: string = target,
): Promise<string> {
  const form = `{ method: 'post', action: '${target}' }`;
  await page.evaluate(`document.body.append(Object.assign(document.createElement('form'), ${form}))`);
  await page.evaluate('document.forms[document.forms.length - 1].submit()');
  await arrive(page, start);
  return String(await page.evaluate('document.body.innerText'));
}
