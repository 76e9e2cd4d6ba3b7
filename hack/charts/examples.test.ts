import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { get, type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { json } from 'node:stream/consumers';
import { serviceKey } from '@tollgate/kit/service-key';
import { type EchoedRequest, startEcho } from '@tollgate/testkit/echo';
import { startEnvoy } from '@tollgate/testkit/envoy';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import { programIsMissing } from '@tollgate/testkit/processes';
import { authServerSecret } from '@tollgate/testkit/services';
import { freePort } from '@tollgate/testkit/tcp';
import { addressesIn, startTextProxy, textProxies } from '@tollgate/testkit/text-proxies';
import { load } from 'js-yaml';
import t, { type Test } from 'tap';
import { identityHeaderNames } from '../../services/auth/src/ext-authz/identity-headers.ts';
import { documentSteps } from '../e2e/support/document-shell.ts';
import { isReady, policyWhen } from '../e2e/support/policies.ts';
import { startAuth, startAuthDatabase, startLimiter, startReplica } from '../e2e/support/processes.ts';
import { getStatuses } from '../e2e/support/requests.ts';
import { definitionsAreMissing, gatewayDefinitions } from './support/gateway-crds.ts';
import { clusterArguments, helmIsMissing, runHelm } from './support/helm.ts';
import {
  configText,
  exampleFile,
  exampleObject,
  getPodTemplates,
  type ManifestObject,
  onLoopback,
  parseConfig,
  parseManifests,
  readExamples,
  servicePorts,
  serviceReferences,
  toAddress,
  toServiceHost,
} from './support/manifests.ts';

/** The pages in the order in which a reader of all of them would follow them. */
const pages = ['', 'envoy/', 'envoy-gateway/', 'istio/', 'kubernetes-gateway/', 'caddy/', 'nginx/'].map(
  (folder) => `examples/${folder}README.md`,
);

const textProxyNames = ['caddy', 'nginx'] as const;
const routes = 'examples/kubernetes-gateway/routes.yaml';

const examples = await readExamples();
const skip = helmIsMissing();

async function renderRelease() {
  const { code, stdout, stderr } = await runHelm([
    ...['template', 'tollgate', 'charts/tollgate', '--namespace=tollgate', ...clusterArguments],
    ...['--values=charts/tollgate/ci/dev-values.yaml', '--set=auth.policies.enabled=true'],
  ]);
  if (code !== 0) throw new Error(`helm template: ${stderr}`);
  return parseManifests(stdout);
}

t.test('the pages have a command for each file, and a file for each command', async (t) => {
  const named = (await readScripts()).flatMap((script) => script.match(/examples\/\S+/g) ?? []);
  t.strictSame(new Set(named), new Set(examples.map(({ path }) => path)));
});

t.test('policies are applied before routes, which are open without them', async (t) => {
  for (const [gateway, policy] of [
    ['istio', 'authorization'],
    ['envoy-gateway', 'identity'],
  ] as const) {
    const page = await readFile(`examples/${gateway}/README.md`, 'utf8');
    const files = [...page.matchAll(/apply -f examples\/(\S+)/g)].map(([, file]) => file);
    const routes = files.indexOf('kubernetes-gateway/routes.yaml');
    t.equal(files[routes - 1], `${gateway}/${policy}.yaml`, gateway);
  }
});

t.test('the pages show the policy of the shop', async (t) => {
  const { text } = exampleFile(examples, 'examples/shop/policy.yaml');
  const shown = text.replaceAll(/^#.*\n/gm, '');
  for (const page of ['README.md', 'examples/README.md'])
    t.match(await readFile(page, 'utf8'), `\`\`\`yaml\n${shown}\`\`\``, page);
});

t.test('the charts render every Service and port that the examples name', { skip }, async (t) => {
  const release = servicePorts(await renderRelease());
  const own = servicePorts(examples.flatMap(({ objects }) => objects));
  const there = new Set([...release, ...own].map(toAddress));
  const names = new Set(release.map(({ host }) => host.split('.')[0]));
  for (const { path, text, objects } of examples) {
    const configs = objects
      .filter(({ kind }) => kind === 'ConfigMap')
      .flatMap(({ data }) => Object.entries({ ...(data as Record<string, string>) }))
      .flatMap(([key, config]) => (key.endsWith('.yaml') ? load(config) : []));
    const documents = objects.length === 0 ? [load(text)] : [...objects, ...configs];
    const references = serviceReferences(documents, 'shop');
    for (const reference of references)
      t.ok(there.has(toAddress(reference)), `${path}: ${toAddress(reference)}`);
    // Redis is the reader's.
    const named = addressesIn(text).filter((address) => !address.startsWith('redis.'));
    for (const address of named) t.ok(there.has(address), `${path}: ${address}`);
    // A name before = is that of a cookie.
    for (const [name] of text.matchAll(/\btollgate-[\w-]+(?![\w-]|=)/g))
      t.ok(names.has(name), `${path}: ${name}`);
  }
  const proxies = examples.filter(({ path }) => /proxy|identity|istio\/install/.test(path));
  for (const { path, text } of proxies) t.match(text, 'tollgate-', path);
});

kubeSuite(t, 'the examples, applied and running', async (t, kube) => {
  for (const name of ['ratelimitconfigs', 'accesspolicies'])
    await kube.apply(await readFile(`crds/${name}.yaml`, 'utf8'));
  // As helm does. The services are ready before there is a policy or a definition of gateways.
  await kube.kubectl(['create', 'namespace', 'tollgate']);
  const { services, auth } = await startServices(t, kube);
  await applyAsThePagesSay(t, kube);

  await t.test('their Pods satisfy the restricted profile of their namespace', async (t) => {
    const pods = getPodTemplates(examples.flatMap(({ objects }) => objects));
    const names = ['caddy', 'envoy', 'nginx', 'shop'].map((name) => `Deployment ${name}`);
    t.strictSame(new Set(pods.map(({ of }) => of)), new Set(names));
    for (const { name, spec } of pods) {
      const { code, stderr } = await dryRunPod(kube, name, spec);
      t.equal(code, 0, stderr);
    }
  });

  await t.test('the values for Istio satisfy that profile with the Pod of its gateway', async (t) => {
    // Parsed boundary: values of the example.
    const { gateways } = load(exampleFile(examples, 'examples/istio/install-values.yaml').text) as {
      readonly gateways?: { readonly seccompProfile?: object };
    };
    const { code, stderr } = await dryRunPod(kube, 'shop-istio', istioGatewayPod(gateways?.seccompProfile));
    t.equal(code, 0, stderr);
    const rejected = await dryRunPod(kube, 'shop-istio', istioGatewayPod(undefined));
    t.match(rejected.stderr, 'seccompProfile', 'the default of Istio violates it');
  });

  const proxy = exampleObject(examples, 'examples/envoy/proxy.yaml', 'ConfigMap');
  const envoy = await startEnvoy({ config: onLoopback(parseConfig(proxy, 'envoy.yaml'), services) });
  t.teardown(envoy.stop);
  const skip = definitionsAreMissing();
  await t.test('the policies of routes decide behind a gateway that sends no routes', { skip }, async (t) => {
    await putIntoForce(kube, routes, 'auth');
    await putIntoForce(kube, 'examples/shop/policy.yaml', 'shop');
    // No host is in the routes.
    const url = `http://127.0.0.1:${envoy.port}`;
    t.strictSame(await getStatuses(`${url}/orders`, undefined, 1), [401]);
    t.strictSame(await getStatuses(`${url}/auth/health`, undefined, 1), [200], 'the public route');
    const { accessToken } = await auth.signUp('route@example.com');
    t.strictSame(await getStatuses(`${url}/orders`, accessToken, 61), [...Array(60).fill(200), 429]);
    const { code, stderr } = await kube.kubectl(['delete', '-f', routes]);
    t.equal(code, 0, stderr);
  });

  await putIntoForce(kube, 'examples/shop/policy-by-host.yaml', 'shop');
  await t.test('Envoy: identity and limits decide', (t) =>
    decides(t, `http://localhost:${envoy.port}`, 'ada@example.com'),
  );

  for (const name of textProxyNames) {
    const skip = programIsMissing(name);
    await t.test(`${name}: the auth server decides by identity and limits`, { skip }, async (t) => {
      await decides(t, await startTextExample(t, name, services), `${name}@example.com`);
    });
  }

  await t.test('a hanging auth server: Caddy and nginx deny', async (t) => {
    const names = textProxyNames.filter((name) => !programIsMissing(name));
    const proxies = await Promise.all(
      names.map(async (name) => ({ name, url: await startTextExample(t, name, services) })),
    );
    process.kill(auth.pid, 'SIGSTOP');
    t.teardown(() => process.kill(auth.pid, 'SIGCONT'));
    const answers = proxies.map(async ({ name, url }) => {
      const seen = await getStatuses(`${url}/orders`, undefined, 1);
      t.strictSame(seen, [name === 'caddy' ? 504 : 503], name);
    });
    await Promise.all(answers);
  });
});

/** Applies a policy, and waits until it is programmed. A year hardly ends during the test. */
async function putIntoForce(kube: KubeApiserver, file: string, name: string): Promise<void> {
  await kube.apply(exampleFile(examples, file).text.replaceAll('per: Minute', 'per: Year'));
  await policyWhen(kube, name, isReady);
}

/** The part of Istio's template for gateways that admission evaluates. */
function istioGatewayPod(seccompProfile: object | undefined): object {
  return {
    securityContext: {
      sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }],
      ...(seccompProfile !== undefined && { seccompProfile }),
    },
    containers: [
      {
        name: 'istio-proxy',
        image: 'istio-proxy',
        securityContext: {
          ...{ allowPrivilegeEscalation: false, privileged: false, readOnlyRootFilesystem: true },
          ...{ runAsNonRoot: true, runAsUser: 1337, runAsGroup: 1337, capabilities: { drop: ['ALL'] } },
        },
      },
    ],
  };
}

/** Whether the API server admits a Pod of the shop. */
function dryRunPod(kube: KubeApiserver, name: string, spec: object) {
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'shop' }, spec };
  const command = ['create', '--dry-run=server', '--validate=strict', '-f', '-'];
  return kube.kubectl(command, { input: JSON.stringify(pod) });
}

/** Starts such a proxy as its example says, with the host of the policy in its URL. */
async function startTextExample(
  t: Test,
  name: (typeof textProxyNames)[number],
  ports: ReadonlyMap<string, number>,
): Promise<string> {
  const proxy = exampleObject(examples, `examples/${name}/proxy.yaml`, 'ConfigMap');
  const config = configText(proxy, textProxies[name].key);
  return (await startTextProxy(t, name, { config, ports })).replace('127.0.0.1', 'localhost');
}

/** The commands of all pages. */
async function readScripts(): Promise<readonly string[]> {
  const texts = await Promise.all(pages.map((page) => readFile(page, 'utf8')));
  return texts.flatMap(documentSteps).map(({ script }) => script);
}

/** Applies each file by the commands of the pages, in their order. */
async function applyAsThePagesSay(t: Test, kube: KubeApiserver): Promise<void> {
  const missing = definitionsAreMissing();
  const isOfGateway = (object: ManifestObject) => /gateway|istio/.test(object.apiVersion);
  const kinds = new Set(examples.flatMap(({ objects }) => objects.map(({ kind }) => kind)));
  if (missing === false) await kube.apply(gatewayDefinitions(kinds));

  await t.test('kubectl apply accepts all objects', async (t) => {
    const commands = /^kubectl (create namespace|apply -f) (\S+)$/gm;
    const matches = (await readScripts()).flatMap((script) => [...script.matchAll(commands)]);
    for (const [command, verb = '', target = ''] of matches) {
      if (verb === 'create namespace') await kube.kubectl(['create', 'namespace', target]);
      else if (missing && exampleFile(examples, target).objects.some(isOfGateway))
        t.pass(target, { skip: missing });
      else {
        const apply = ['apply', '--server-side', '--force-conflicts', '--validate=strict', '-f', target];
        const { code, stderr } = await kube.kubectl(apply);
        t.equal(code, 0, `${command}: ${stderr}`);
      }
    }
  });
}

/**
 * Starts the services behind the proxies. Returns their ports by `host:port` of the Services, and
 * the auth server.
 */
async function startServices(t: Test, kube: KubeApiserver) {
  const [database, xds, echo] = await Promise.all([
    startAuthDatabase(t),
    startReplica(t, kube, 'tollgate-xds-0'),
    startEcho(),
  ]);
  t.teardown(echo.stop);
  const limiter = await startLimiter(xds.address);
  t.teardown(limiter.stop);
  const httpPort = await freePort();
  const auth = await startAuth(t, database, {
    SVC_API_KEYS_ENABLED: 'true',
    SVC_EXT_AUTHZ_POLICY_SERVER: xds.address,
    SVC_EXT_AUTHZ_HTTP_PORT: String(httpPort),
    SVC_EXT_AUTHZ_HTTP_FORWARDED: 'true',
    SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS: limiter.address,
    SVC_EXT_AUTHZ_RATE_LIMIT_TIMEOUT: '10s',
  });
  const services = new Map([
    [`${toServiceHost('shop', 'shop')}:8080`, echo.port],
    [`${toServiceHost('tollgate-auth', 'tollgate')}:9002`, Number(new URL(auth.url).port)],
    [`${toServiceHost('tollgate-auth-headless', 'tollgate')}:9001`, auth.extAuthzPort],
    [`${toServiceHost('tollgate-auth-headless', 'tollgate')}:9003`, httpPort],
  ]);
  return { services, auth };
}

/** The behaviour that the README describes. */
async function decides(t: Test, url: string, email: string): Promise<void> {
  t.strictSame(await getStatuses(`${url}/`, undefined, 1), [200], 'the public page');
  t.strictSame(await getStatuses(`${url}/orders`, undefined, 1), [401], 'without a token');

  const signedUp = await fetch(`${url}/auth/signup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password: 'correct horse battery' }),
  });
  t.equal(signedUp.status, 200, 'signing up needs no token');
  // Parsed boundary: of the service's own JSON two fields are looked at.
  const { access_token: token, user } = (await signedUp.json()) as {
    readonly access_token: string;
    readonly user: { readonly id: string };
  };
  const answer = await fetch(`${url}/orders`, {
    headers: { authorization: `Bearer ${token}`, 'x-auth-role': 'admin' },
  });
  // Parsed boundary: what the echo answers.
  const { headers } = (await answer.json()) as EchoedRequest;
  t.match(headers, { 'x-auth-user-id': user.id, 'x-auth-plan': 'free', 'x-auth-role': 'authenticated' });
  t.equal(headers.authorization, `Bearer ${token}`);
  await keepsKeys(t, url);
  const forged = {
    ...Object.fromEntries(identityHeaderNames.map((name) => [name, 'forged'])),
    ...{ 'x-auth-user-id': user.id, 'x-auth-plan': 'pro', x_auth_role: 'admin', x_user_id: 'root' },
    ...{ 'X.Auth.Role': 'admin', 'x.user-id': 'root' },
  };
  const anonymous = await fetch(`${url}/`, { headers: forged });
  t.notMatch(await anonymous.text(), /x.(auth|user)/, 'without a user there are no identity headers');
  const disguised = await getEchoed(`${url}/orders`, {
    authorization: `Bearer ${token}`,
    connection: 'keep-alive, x-auth-user-id, x-auth-anonymous',
    'x-forwarded-for': '192.0.2.1',
  });
  t.match(disguised, { 'x-auth-user-id': user.id, 'x-auth-anonymous': 'false' }, 'Connection removes none');
  t.match(disguised['x-forwarded-for'], /^(?!.*192\.0\.2\.1$).*\d$/, 'the address of the client comes last');
  t.strictSame(await getStatuses(`${url}/a%2fb`, token, 1), [400], 'an ambiguous path');
  const seen = await getStatuses(`${url}/orders`, token, 59);
  t.strictSame(seen, [...Array(58).fill(200), 429], '60 requests');
}

/** API keys identify callers, and do not reach the application. */
async function keepsKeys(t: Test, url: string): Promise<void> {
  const created = await fetch(`${url}/auth/admin/api-keys`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${serviceKey(authServerSecret)}` },
    body: JSON.stringify({ name: 'shop', plan: 'pro' }),
  });
  // Parsed boundary: of the service's own JSON two fields are looked at.
  const { id, key } = (await created.json()) as { readonly id: string; readonly key: string };
  for (const headers of [{ 'x-api-key': key }, { authorization: `Bearer ${key}` }]) {
    const seen = await getEchoed(`${url}/orders`, headers);
    t.match(seen, { 'x-auth-kind': 'api_key', 'x-auth-key-id': id, 'x-auth-plan': 'pro' });
    t.notMatch(JSON.stringify(seen), key, Object.keys(headers).join());
  }
  const malformed = { authorization: `Bearer ${key} x`, 'x-api-key': `${key}x` };
  t.notMatch(JSON.stringify(await getEchoed(`${url}/`, malformed)), key, 'on a public route, too');
}

/** The headers that reach the application; `fetch` cannot send `Connection`. */
async function getEchoed(url: string, headers: OutgoingHttpHeaders): Promise<IncomingHttpHeaders> {
  const [response] = (await once(get(url, { headers, agent: false }), 'response')) as [IncomingMessage];
  // Parsed boundary: what the echo answers.
  return ((await json(response)) as EchoedRequest).headers;
}
