import { copyFileSync } from 'node:fs';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { connectAuthz, summary } from '../helpers/authz-client.ts';
import { createMachine, oauthServer, requestToken } from '../helpers/oauth-clients.ts';

const apiUrl = 'http://localhost:9999';
const jwtBearer = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

const routes = `
issuers:
  - name: cluster
    kubernetes: true
    claims: { namespace: '["kubernetes.io"].namespace' }
`;

kubeSuite(t, 'a cluster as an issuer', async (t, kube) => {
  const createToken = async (account: string, ...more: string[]) => {
    const { code, stdout, stderr } = await kube.kubectl(['create', 'token', account, ...more]);
    if (code !== 0) throw new Error(stderr);
    return stdout.trim();
  };
  for (const account of ['gateway', 'orders']) await kube.kubectl(['create', 'serviceaccount', account]);
  const folder = makeTextFolder(t);
  // As Kubernetes mounts the ServiceAccount of the Pod.
  copyFileSync(kube.caFile, `${folder.path}/ca.crt`);
  folder.write('token', await createToken('gateway'));
  folder.write('routes.yaml', routes);
  const { port } = new URL(kube.url);
  const server = await startAuthServer(t, {
    ...oauthServer,
    EXT_AUTHZ_ROUTES_FILE: `${folder.path}/routes.yaml`,
    EXT_AUTHZ_SERVICE_ACCOUNT_FOLDER: folder.path,
    KUBERNETES_SERVICE_HOST: '127.0.0.1',
    KUBERNETES_SERVICE_PORT: port,
  });
  const client = connectAuthz(t, server.extAuthz.grpc);
  const check = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` };
    return summary(await client.check({ method: 'GET', path: '/', headers }));
  };

  t.test('a token of a service account is a client', async (t) => {
    t.match(await check(await createToken('orders', '--audience', 'tollgate')), {
      code: 0,
      set: {
        'x-auth-kind': 'client',
        'x-auth-client-id': 'system:serviceaccount:default:orders',
        'x-auth-issuer': 'cluster',
        'x-auth-namespace': 'default',
        'x-auth-user-id': undefined,
      },
      metadata: { kind: 'client', client_id: 'system:serviceaccount:default:orders', namespace: 'default' },
    });
  });

  t.test('a token for the API server is rejected', async (t) => {
    const body = { error_code: 'bad_jwt', msg: /aud is not an accepted audience/ };
    t.match(await check(await createToken('orders')), { httpStatus: 401, body });
  });

  /** Exchanges tokens of service accounts for those of a client of one of them (RFC 7523). */
  const connectWorkload = async (to: AuthServer) => {
    const { client_id } = await createMachine(to, {
      ...{ grant_types: [jwtBearer], token_endpoint_auth_method: 'none', scopes: ['orders:read'] },
      workload_identities: [{ issuer: 'cluster', subject: 'system:serviceaccount:default:orders' }],
    });
    return async (account: string, audience: string) => {
      const assertion = await createToken(account, '--audience', audience);
      return requestToken(to, { grant_type: jwtBearer, client_id, assertion });
    };
  };

  t.test('a token of a service account is an assertion for a client', async (t) => {
    const exchange = await connectWorkload(server);
    const { status, body, text } = await exchange('orders', apiUrl);
    t.equal(status, 200, text);
    t.match(await check(String(body.access_token)), {
      code: 0,
      set: { 'x-auth-kind': 'client', 'x-auth-scope': 'orders:read' },
    });
    const refused = {
      'of another account': [await exchange('gateway', apiUrl), /may not act/],
      'for the gateway': [await exchange('orders', 'tollgate'), /aud is not only this server/],
    } as const;
    for (const [name, [answer, reason]] of Object.entries(refused))
      t.match(answer.body, { error: 'invalid_grant', error_description: reason }, name);
  });

  t.test('a server elsewhere discovers issuer and keys of the cluster', async (t) => {
    const role = 'system:service-account-issuer-discovery';
    const binding = ['create', 'clusterrolebinding', 'discovery', '--clusterrole', role];
    t.match(await kube.kubectl([...binding, '--group', 'system:unauthenticated']), { code: 0 });
    const [, claims = ''] = (await createToken('orders')).split('.');
    const { iss } = JSON.parse(Buffer.from(claims, 'base64url').toString());
    for (const [name, source] of [
      ['discovered', `discovery: "${kube.url}/.well-known/openid-configuration"`],
      ['named', `jwks_uri: "${kube.url}/openid/v1/jwks"`],
    ] as const) {
      folder.write(
        `${name}.yaml`,
        `issuers: [{ name: cluster, issuer: "${iss}", audiences: [tollgate], ca_file: "${kube.caFile}", ${source} }]`,
      );
      const elsewhere = await startAuthServer(t, {
        ...oauthServer,
        EXT_AUTHZ_ROUTES_FILE: `${folder.path}/${name}.yaml`,
        EXT_AUTHZ_ISSUER_PRIVATE_HOSTS: '127.0.0.1',
      });
      const exchange = await connectWorkload(elsewhere);
      const { status, text } = await exchange('orders', apiUrl);
      t.equal(status, 200, `${name}: ${text}`);
      t.match((await exchange('gateway', apiUrl)).body, { error: 'invalid_grant' });
    }
  });

  t.test('keys stay in use while the API server is down', async (t) => {
    const token = await createToken('orders', '--audience', 'tollgate');
    await kube.killApiserver();
    t.match(await check(token), { code: 0 });
    await kube.startApiserver();
  });
});

t.test('outside of Kubernetes such an issuer is unavailable, and the log says why', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('routes.yaml', routes);
  const server = await startAuthServer(t, { EXT_AUTHZ_ROUTES_FILE: `${folder.path}/routes.yaml` });
  const client = connectAuthz(t, server.extAuthz.grpc);
  const claims = Buffer.from(JSON.stringify({ iss: 'https://kubernetes.default.svc' })).toString('base64url');
  const headers = { authorization: `Bearer e30.${claims}.AA` };
  const body = { error_code: 'issuer_unavailable' };
  t.match(summary(await client.check({ method: 'GET', path: '/', headers })), { httpStatus: 503, body });
  t.match(server.logs(), 'kubernetes: true requires that the service runs in Kubernetes');
});

t.test('own tokens do not depend on such an issuer', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('routes.yaml', routes);
  const server = await startAuthServer(t, { EXT_AUTHZ_ROUTES_FILE: `${folder.path}/routes.yaml` });
  const client = connectAuthz(t, server.extAuthz.grpc);
  const check = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` };
    return summary(await client.check({ method: 'GET', path: '/', headers }));
  };
  const { accessToken, userId } = await signUp(server);
  t.match(await check(accessToken), { code: 0, metadata: { user_id: userId, issuer: 'tollgate' } });
  const body = { error_code: 'bad_jwt', msg: /token is expired/ };
  t.match(await check(adminToken({ exp: 1 })), { httpStatus: 401, body }, 'a client must refresh it');
});
