import { once } from 'node:events';
import { createServer } from 'node:net';
import { makeCertificates } from '@tollgate/testkit/certificates';
import t from 'tap';
import { parseClientOptions } from '../../src/cli/client-options.ts';
import { runCommand } from '../support/run-command.ts';
import { startApp } from '../support/start-app.ts';

const rules = {
  'shop.yaml': `
domain: shop
descriptors:
  - key: path
    value: /login
    rate_limit: { unit: day, requests_per_unit: 2, name: logins }
  - key: internal
    rate_limit: { unlimited: true }
`,
};

/** Ten seconds before midnight, so that what resets does so in ten seconds. */
const nowMs = () => 86_390_000;

const client = (...args: string[]) => runCommand('cli/client.ts', args);

t.test('the client prints the decision and a line for each descriptor', async (t) => {
  const { ports } = await startApp(t, { rules, nowMs, env: { LIMIT_RESPONSE_HEADERS_ENABLED: 'true' } });
  const { exitCode, output, errors } = await client(
    ...['-dial_string', `localhost:${ports.grpc}`, '-domain', 'shop'],
    ...['-descriptors', 'path=/login', '-descriptors', 'internal=yes,more=', '-descriptors=internal=yes'],
  );
  t.equal(errors, '');
  t.equal(
    output,
    `OK
  (path=/login): OK, limit 2 per day (logins), 1 remaining, resets in 10s
  (internal=yes, more=): OK, no limit
  (internal=yes): OK, unlimited
  header RateLimit-Limit: 2
  header RateLimit-Remaining: 1
  header RateLimit-Reset: 10
`,
  );
  t.equal(exitCode, 0);
});

t.test('OVER_LIMIT exits with 0, unless -fail-over-limit is set', async (t) => {
  const { ports } = await startApp(t, { rules, nowMs });
  const flags = [`--dial_string=localhost:${ports.grpc}`, '--domain=shop', '--descriptors=path=/login'];
  const over = await client(...flags, '-hits-addend', '3');
  t.equal(over.exitCode, 0);
  t.match(over.output, /^OVER_LIMIT\n {2}\(path=\/login\): OVER_LIMIT, .*, 0 remaining, resets in 10s\n$/);
  const failing = await client(...flags, '-fail-over-limit');
  t.equal(failing.exitCode, 3);
  t.match(failing.output, /^OVER_LIMIT\n/);
});

t.test('-json prints the response in proto3 JSON', async (t) => {
  const { ports } = await startApp(t, { rules, nowMs });
  const { exitCode, output } = await client(
    ...['-dial_string', `localhost:${ports.grpc}`, '-domain', 'shop', '-descriptors', 'path=/login', '-json'],
  );
  t.equal(exitCode, 0);
  t.strictSame(JSON.parse(output), {
    overallCode: 'OK',
    statuses: [
      {
        code: 'OK',
        currentLimit: { name: 'logins', requestsPerUnit: 2, unit: 'DAY' },
        limitRemaining: 1,
        durationUntilReset: '10s',
      },
    ],
  });
});

t.test('the client supports TLS with a client certificate', async (t) => {
  const certificates = makeCertificates();
  t.teardown(() => certificates.remove());
  const { ca, server, client: own } = certificates;
  const { ports } = await startApp(t, {
    rules,
    env: {
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_CERT: server.certFile,
      GRPC_SERVER_TLS_KEY: server.keyFile,
      GRPC_CLIENT_TLS_CACERT: ca.certFile,
    },
  });
  const flags = ['-dial_string', `localhost:${ports.grpc}`, '-domain', 'shop', '-descriptors', 'path=/login'];
  const tls = ['-grpc-use-tls', '-grpc-server-ca-file', ca.certFile];
  const welcome = await client(
    ...flags,
    ...tls,
    '-grpc-cert-file',
    own.certFile,
    '-grpc-key-file',
    own.keyFile,
  );
  t.strictSame([welcome.exitCode, welcome.errors], [0, '']);
  const untrusted = await client(...flags, ...tls, '-timeout', '2s');
  t.equal(untrusted.exitCode, 1);
  t.match(untrusted.errors, `the call to localhost:${ports.grpc} failed: `);
});

t.test('a PEM file that cannot be read is named', async (t) => {
  const { exitCode, errors } = await client(
    ...['-domain', 'shop', '-descriptors', 'a=b', '-grpc-use-tls', '-grpc-server-ca-file', '/no/such.pem'],
  );
  t.equal(exitCode, 1);
  t.match(errors, /localhost:8081 was not called: ENOENT.*\/no\/such\.pem/);
});

t.test('without a response the client names the address and what to check', async (t) => {
  const { exitCode, output, errors } = await client(
    ...['-dial_string', '127.0.0.1:1', '-domain', 'shop', '-descriptors', 'a=b'],
  );
  t.equal(exitCode, 1);
  t.equal(output, '');
  t.match(errors, /^the call to 127\.0\.0\.1:1 failed: UNAVAILABLE: .*ECONNREFUSED.*\n.*GRPC_PORT.*\n$/);
});

t.test('a server that does not respond fails after -timeout', async (t) => {
  const silent = createServer((socket) => t.teardown(() => socket.destroy())).listen(0, '127.0.0.1');
  t.teardown(() => silent.close());
  await once(silent, 'listening');
  const address = silent.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const { exitCode, errors } = await client(
    ...['-dial_string', `127.0.0.1:${port}`, '-domain', 'a', '-descriptors', 'a=b', '-timeout', '300ms'],
  );
  t.equal(exitCode, 1);
  t.match(errors, /DEADLINE_EXCEEDED.*\n.*-timeout/);
});

t.test('the error of a refused request is printed', async (t) => {
  const { ports } = await startApp(t, { rules: { 'broken.yaml': 'domain: ""' } });
  const { exitCode, errors } = await client(
    ...['-dial_string', `localhost:${ports.grpc}`, '-domain', 'shop', '-descriptors', 'a=b'],
  );
  t.equal(exitCode, 1);
  t.match(errors, 'failed: UNKNOWN: no rate limit configuration loaded');
});

t.test('invalid flags exit with 2 and list the valid ones', async (t) => {
  const { exitCode, output, errors } = await client('-domains', 'shop');
  t.equal(exitCode, 2);
  t.equal(output, '');
  t.match(
    errors,
    /unknown flag -domains: expected one of -dial_string, -domain, -descriptors, .*-oltp-protocol/,
  );
  t.match(errors, 'tollgate-ratelimit-client --help');
});

t.test('--help shows every flag and exits with 0', async (t) => {
  const { exitCode, output } = await client('--help');
  t.equal(exitCode, 0);
  for (const flag of [
    '-dial_string <host:port>',
    '-descriptors <key=value,...>',
    '-timeout',
    '-oltp-protocol',
  ]) {
    t.match(output, flag);
  }
});

const problemsOf = (...args: string[]) => {
  const parsed = parseClientOptions(args);
  return parsed.kind === 'wrong' ? parsed.problems.join('\n') : parsed.kind;
};
const enough = ['-domain', 'shop', '-descriptors', 'a=b'];

t.test('an entry has exactly one equals sign and a key', async (t) => {
  for (const text of ['a', 'a=b=c', '=b', '', 'a=b,', 'a=b,,c=d']) {
    t.match(problemsOf('-domain', 'shop', '-descriptors', text), /is not an entry: expected key=value/, text);
  }
  const parsed = parseClientOptions(['-domain', 'shop', '-descriptors', 'name=foo,age=']);
  t.strictSame(parsed.kind === 'run' ? parsed.options.descriptors : [], [
    [
      { key: 'name', value: 'foo' },
      { key: 'age', value: '' },
    ],
  ]);
});

t.test('missing domain and descriptors are both reported', async (t) => {
  t.match(problemsOf(), /-domain is needed\n-descriptors is needed/);
});

t.test('numbers and durations out of range are rejected', async (t) => {
  for (const hits of ['-1', 'x', '1.5', '4294967296', '']) {
    t.match(problemsOf(...enough, `-hits-addend=${hits}`), '-hits-addend is a whole number', hits);
  }
  for (const timeout of ['5', '0s', '-1s', 'soon', '']) {
    t.match(problemsOf(...enough, `-timeout=${timeout}`), '-timeout is a duration', timeout);
  }
  t.equal(problemsOf(...enough, '-hits-addend=4294967295', '-timeout=1m30s'), 'run');
});

t.test('certificate files without TLS are rejected', async (t) => {
  t.match(problemsOf(...enough, '-grpc-server-ca-file', 'ca.pem'), 'with -grpc-use-tls only');
  t.match(problemsOf(...enough, '-grpc-use-tls', '-grpc-cert-file', 'c.pem'), 'belong together');
});

t.test('the flag for a tracing protocol is accepted', async (t) => {
  t.equal(problemsOf(...enough, '-oltp-protocol', 'grpc'), 'run');
});
