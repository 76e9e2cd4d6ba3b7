import { awaitUntil } from '@tollgate/testkit/await-until';
import { type Certificates, makeCertificates } from '@tollgate/testkit/certificates';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { fetchText, startXdsServer } from '@tollgate/testkit/services';
import t, { type Test } from 'tap';
import { startAuthServer } from '../helpers/auth-server.ts';
import { connectAuthz, summary } from '../helpers/authz-client.ts';

const policy = `apiVersion: policy.tollgate.dev/v1alpha1
kind: AccessPolicy
metadata: { name: open, namespace: shop }
spec: { hosts: [a.test], access: { type: Public } }
`;

const token = 'a-token-of-the-policy-client-0123456789';

function certificatesFor(t: Test): Certificates {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  return certificates;
}

/** An xDS server that requires a client certificate and a bearer token. */
async function startGuardedXds(t: Test) {
  const certificates = certificatesFor(t);
  const manifests = makeTextFolder(t);
  manifests.write('policies.yaml', policy);
  const tokens = makeTextFolder(t);
  tokens.write('tokens', `${token}\n`);
  const { ca, server } = certificates;
  const xds = await startXdsServer({
    ...{ XDS_SOURCE: 'folder', XDS_FOLDER: manifests.path },
    ...{ XDS_GRPC_TLS_CERT: server.certFile, XDS_GRPC_TLS_KEY: server.keyFile },
    ...{ XDS_GRPC_CLIENT_CACERT: ca.certFile, XDS_GRPC_TOKEN_FILE: `${tokens.path}/tokens` },
  });
  t.teardown(xds.stop);
  const client = certificates.issue({ name: 'auth', subjectAltNames: ['DNS:auth.tollgate.svc'] });
  const settings = {
    ...{ EXT_AUTHZ_POLICY_SERVER: xds.address, EXT_AUTHZ_RATE_LIMIT_ADDRESS: '127.0.0.1:1' },
    ...{ EXT_AUTHZ_POLICY_SERVER_TLS: 'true', EXT_AUTHZ_POLICY_SERVER_TLS_CA: ca.certFile },
    EXT_AUTHZ_POLICY_SERVER_TLS_CERT: client.certFile,
    EXT_AUTHZ_POLICY_SERVER_TLS_KEY: client.keyFile,
    EXT_AUTHZ_POLICY_SERVER_TOKEN: token,
  };
  return { xds, settings };
}

t.test('policies arrive over mutual TLS with a bearer token, and not without either', async (t) => {
  const { xds, settings } = await startGuardedXds(t);
  const others = certificatesFor(t);
  const start = async (changes: Readonly<Record<string, string>> = {}) => {
    const server = await startAuthServer(t, { ...settings, ...changes });
    const client = connectAuthz(t, server.extAuthz.grpc);
    const check = async () =>
      summary(await client.check({ method: 'GET', path: '/', host: 'a.test' })).httpStatus ?? 200;
    return { server, check };
  };
  const { check } = await start();
  await awaitUntil(async () => (await check()) === 200, { what: 'the policies' });

  const { ca } = others;
  const foreign = others.issue({ name: 'foreign' });
  const refused: readonly (readonly [string, Readonly<Record<string, string>>, RegExp])[] = [
    ['a server of another authority', { EXT_AUTHZ_POLICY_SERVER_TLS_CA: ca.certFile }, /certificate/],
    [
      'another server name',
      { EXT_AUTHZ_POLICY_SERVER_TLS_SAN: 'other.tollgate.svc' },
      /other\.tollgate\.svc/,
    ],
    [
      'no client certificate',
      { EXT_AUTHZ_POLICY_SERVER_TLS_CERT: '', EXT_AUTHZ_POLICY_SERVER_TLS_KEY: '' },
      /certificate/,
    ],
    [
      'a client certificate of another authority',
      {
        EXT_AUTHZ_POLICY_SERVER_TLS_CERT: foreign.certFile,
        EXT_AUTHZ_POLICY_SERVER_TLS_KEY: foreign.keyFile,
      },
      /unreachable/,
    ],
    ['a wrong token', { EXT_AUTHZ_POLICY_SERVER_TOKEN: `${token}x` }, /UNAUTHENTICATED/],
    ['no token', { EXT_AUTHZ_POLICY_SERVER_TOKEN: '' }, /UNAUTHENTICATED/],
  ];
  for (const [name, changes, reason] of refused) {
    const late = await start(changes);
    const lines = () =>
      late.server
        .logs()
        .split('\n')
        .filter((line) => /management server (?:unreachable|ended the stream)/.test(line));
    await awaitUntil(() => lines().length > 0, { what: `a log line for ${name}` });
    t.match(lines()[0], reason, name);
    t.equal(await late.check(), 503, name);
    t.notMatch(late.server.logs(), token, 'the token is not logged');
  }
  t.match(
    await fetchText(`${xds.adminUrl}/metrics`),
    /^tollgate_xds_refused_streams_total\{reason="unauthenticated"\} [2-9]/m,
  );
});
