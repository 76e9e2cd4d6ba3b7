import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { freePort } from '@tollgate/testkit/tcp';
import { load } from 'js-yaml';
import t from 'tap';
import { describeRuleWarnings, loadRouteRules } from '../../src/ext-authz/rules-file.ts';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';
import { startAuthzEnvoy } from '../helpers/authz-envoy.ts';

const page = readFileSync(join(import.meta.dirname, '../../../../docs/external-authorization.md'), 'utf8');
const [grpc = '', http = '', _traefik, routes = '', claims = '', limits = ''] = [
  ...page.matchAll(/^```yaml\n(.*?)^```$/gms),
].map(([, text = '']) => text);

for (const [variant, text] of [
  ['grpc', grpc],
  ['http', http],
] as const)
  t.test(`the Envoy configuration of the page works for ${variant}`, async (t) => {
    const folder = temporaryFolder();
    t.teardown(folder.remove);
    const file = join(folder.path, 'routes.yaml');
    writeFileSync(file, 'limit: [[remote_address]]');
    // Limits fail open: nothing listens there.
    const limiter = { EXT_AUTHZ_RATE_LIMIT_ADDRESS: `127.0.0.1:${await freePort()}` };
    const server = await startAuthServer(t, { EXT_AUTHZ_ROUTES_FILE: file, ...limiter });
    const { accessToken, userId } = await signUp(server);
    const port = server.extAuthz[variant];
    const moved = text.replace(/address: auth, port_value: \d+/, `address: 127.0.0.1, port_value: ${port}`);
    t.not(moved, text);
    // How long an answer may take is not what is tested, on a machine that may have other work.
    const here = moved.replaceAll(/timeout: [\d.]+s/g, 'timeout: 20s');
    // The form of a bootstrap is for Envoy to judge.
    const written = load(here) as { http_filters: object[]; clusters: object[] };
    const { url, upstream } = await startAuthzEnvoy(t, {
      ...{ variant, port, written },
      manager: { use_remote_address: true },
    });
    t.equal((await fetch(url)).status, 401);
    const headers = { authorization: `Bearer ${accessToken}`, 'x-user-id': 'root' };
    t.equal((await fetch(url, { headers })).status, 200);
    const [seen] = upstream.requests;
    t.match(seen?.headers, { 'x-auth-user-id': userId, 'x-user-id': undefined });
    t.match(server.logs(), 'rate limit check failed', 'a limit applies');
    t.notMatch(server.logs(), 'client address unknown');
  });

t.test('the route rules of the page are valid', async (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const file = join(folder.path, 'routes.yaml');
  writeFileSync(file, routes);
  t.match(await loadRouteRules(file), { ok: true, rules: { routes: { length: 8 } } });
  writeFileSync(file, claims);
  t.match(await loadRouteRules(file, { canLimit: true }), {
    ok: true,
    rules: {
      addedAttributes: ['department'],
      policy: { fallback: { limits: [{ keys: ['department', 'user_id'] }] } },
    },
  });
  writeFileSync(file, limits);
  const loaded = await loadRouteRules(file, { canLimit: true });
  t.match(loaded, { ok: true, rules: { routes: { length: 3 }, policy: { limitDomain: 'shop' } } });
  t.same(loaded.ok && describeRuleWarnings(loaded.rules, { canLimit: true }), []);
});
