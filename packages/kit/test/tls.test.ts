import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, createServer } from 'node:tls';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { type Certificate, makeCertificates } from '@tollgate/testkit/certificates';
import t, { type Test } from 'tap';
import { loadTlsFiles, type TlsMaterial, type TlsValidity, watchTlsFiles } from '../src/tls.ts';
import { recordingLogger } from './helpers/recording-logger.ts';

const certificates = makeCertificates();
t.teardown(() => certificates.remove());
const { ca, server, client } = certificates;

function makeFolder(t: Test): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'kit-')));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function place(folder: string, pair: Certificate): { certFile: string; keyFile: string } {
  const files = { certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') };
  copyFileSync(pair.certFile, files.certFile);
  copyFileSync(pair.keyFile, files.keyFile);
  return files;
}

async function problemOf(files: Parameters<typeof loadTlsFiles>[0]): Promise<string> {
  const loaded = await loadTlsFiles(files);
  return loaded.ok ? 'none' : loaded.problem;
}

t.test('a certificate, its key and authorities are read', async (t) => {
  const loaded = await loadTlsFiles({
    certFile: server.certFile,
    keyFile: server.keyFile,
    caFile: ca.certFile,
  });
  t.ok(loaded.ok);
  if (!loaded.ok) return;
  t.equal(loaded.material.cert?.toString(), server.cert);
  t.equal(loaded.material.key?.toString(), server.key);
  t.equal(loaded.material.ca?.toString(), ca.cert);
  const days = ((loaded.material.notAfterMs ?? 0) - Date.now()) / 86_400_000;
  t.ok(days > 1 && days < 3, `valid for ${days} days`);
});

t.test('every part is optional, but a pair is complete', async (t) => {
  t.same(await loadTlsFiles({}), { ok: true, material: {} });
  t.same(await loadTlsFiles({ certFile: '', keyFile: '', caFile: '' }), { ok: true, material: {} });
  t.equal(await problemOf({ caFile: ca.certFile }), 'none');
  t.match(await problemOf({ certFile: server.certFile }), server.certFile);
  t.match(await problemOf({ keyFile: server.keyFile, certFile: '' }), server.keyFile);
});

t.test('a problem names the file and the reason', async (t) => {
  const folder = makeFolder(t);
  const empty = join(folder, 'empty.pem');
  writeFileSync(empty, '');
  const broken = join(folder, 'broken.pem');
  writeFileSync(broken, `${ca.cert}${ca.cert.replace(/\n.{20}/, `\n${'A'.repeat(20)}`)}`);
  const missing = join(folder, 'missing.pem');
  const { certFile, keyFile } = server;
  t.match(await problemOf({ certFile: missing, keyFile }), `${missing} cannot be read: ENOENT`);
  t.match(await problemOf({ certFile: empty, keyFile }), `${empty} holds no certificate`);
  t.match(await problemOf({ certFile, keyFile: empty }), `${empty} holds no private key`);
  t.match(await problemOf({ certFile, keyFile: certFile }), `${certFile} holds no private key`);
  t.match(
    await problemOf({ certFile, keyFile: client.keyFile }),
    `${client.keyFile} does not belong to the certificate in ${certFile}`,
  );
  t.match(await problemOf({ caFile: keyFile }), `${keyFile} holds no certificate`);
  t.match(await problemOf({ caFile: broken }), `certificate 2 in ${broken} cannot be read`);
  t.match(await problemOf({ certFile: folder, keyFile }), 'EISDIR');
});

t.test('inconsistent first files are an error', async (t) => {
  const { logger } = recordingLogger();
  const files = { certFile: server.certFile, keyFile: client.keyFile };
  await t.rejects(watchTlsFiles(files, { logger }), { message: /does not belong to the certificate/ });
});

t.test(
  'a new pair is used once both of its halves are there, and the old one stays until then',
  async (t) => {
    const folder = makeFolder(t);
    const files = place(folder, server);
    const { logger, lines } = recordingLogger();
    const tls = await watchTlsFiles(files, { logger, debounceMs: 5 });
    t.teardown(() => tls.close());
    const received: TlsMaterial[] = [];
    tls.onChange((material) => received.push(material));

    copyFileSync(client.certFile, files.certFile);
    await awaitUntil(() => lines.some((line) => line.level === 'error'), {
      what: 'the problem to be logged',
    });
    t.equal(tls.current().cert?.toString(), server.cert, 'the old one stays');
    copyFileSync(client.keyFile, files.keyFile);
    await awaitUntil(() => received.length > 0, { what: 'the new pair' });
    t.equal(tls.current().cert?.toString(), client.cert);
    t.equal(tls.current().key?.toString(), client.key);
    t.equal(tls.current(), received[0]);
    t.equal(received.length, 1);
    t.equal(lines.filter((line) => line.level === 'error').length, 1, 'logged once');
    t.notMatch(JSON.stringify(lines), 'PRIVATE KEY');
  },
);

t.test('missing or invalid files do not replace the last good ones', async (t) => {
  const folder = makeFolder(t);
  const files = place(folder, server);
  const { logger, lines } = recordingLogger();
  const tls = await watchTlsFiles(files, { logger, debounceMs: 5 });
  t.teardown(() => tls.close());
  let changes = 0;
  tls.onChange(() => {
    changes += 1;
  });
  rmSync(files.keyFile);
  await awaitUntil(() => lines.some((line) => /ENOENT/.test(String(line.problem))), {
    what: 'the missing key',
  });
  writeFileSync(files.certFile, 'nonsense');
  await awaitUntil(() => lines.length >= 2, { what: 'the nonsense' });
  t.equal(lines.length, 2);
  t.equal(tls.current().cert?.toString(), server.cert);
  place(folder, server);
  copyFileSync(client.certFile, files.certFile);
  copyFileSync(client.keyFile, files.keyFile);
  await awaitUntil(() => changes >= 1, { what: 'the next good pair' });
  t.equal(changes, 1);
  t.equal(tls.current().cert?.toString(), client.cert);
});

t.test('a certificate that has expired, or soon will, is used and logged', async (t) => {
  const day = 86_400_000;
  const issuedMs = Date.now();
  const lasting = certificates.issue({ name: 'lasting', validDays: 90 });
  for (const [pair, passedMs, level, message] of [
    [certificates.issue({ name: 'expired', validDays: 0 }), day, 'error', /has expired/],
    [server, 0.5 * day, undefined, undefined],
    [server, 1.6 * day, 'warning', /expires soon/],
    [lasting, 70 * day, undefined, undefined],
    [lasting, 77 * day, 'warning', /expires soon/],
  ] as const) {
    const { logger, lines } = recordingLogger();
    const { certFile, keyFile } = pair;
    const validities: TlsValidity[] = [];
    const tls = await watchTlsFiles(
      { certFile, keyFile },
      { logger, nowMs: () => issuedMs + passedMs, onCertificate: (validity) => validities.push(validity) },
    );
    tls.close();
    t.equal(tls.current().cert?.toString(), pair.cert);
    t.equal(lines[0]?.level, level);
    if (message) t.match(lines[0], { '@message': message, notAfter: String });
    t.match(validities, [{ notAfterMs: tls.current().notAfterMs, notBeforeMs: Number }]);
  }
});

t.test('rewriting the same files is not a change, and listeners can unsubscribe', async (t) => {
  const folder = makeFolder(t);
  const files = place(folder, server);
  const { logger, lines } = recordingLogger();
  const tls = await watchTlsFiles(files, { logger, debounceMs: 5 });
  t.teardown(() => tls.close());
  const received: string[] = [];
  const leave = tls.onChange(() => received.push('first'));
  tls.onChange(() => received.push('second'));
  place(folder, server);
  leave();
  place(folder, client);
  await awaitUntil(() => received.length > 0, { what: 'the change' });
  t.same(received, ['second']);
  t.equal(lines.filter((line) => line['@message'] === 'TLS files reloaded').length, 1);
});

t.test('a running server uses the certificate of a swapped Kubernetes secret', async (t) => {
  const folder = makeFolder(t);
  const files = {
    certFile: join(folder, 'tls.crt'),
    keyFile: join(folder, 'tls.key'),
    caFile: join(folder, 'ca.crt'),
  };
  writeSecret(folder, '1', server);
  for (const name of ['tls.crt', 'tls.key', 'ca.crt']) symlinkSync(join('..data', name), join(folder, name));
  const { logger } = recordingLogger();
  const tls = await watchTlsFiles(files, { logger, debounceMs: 5 });
  t.teardown(() => tls.close());
  const listener = createServer({ ...tls.current() }, (socket) => {
    // Its client may be gone already.
    socket.on('error', () => undefined);
    socket.end();
  });
  tls.onChange((material) => listener.setSecureContext({ ...material }));
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  t.teardown(() => listener.close());
  const address = listener.address();
  const port = typeof address === 'object' && address ? address.port : 0;

  t.equal(await commonNameAt(port), 'localhost');
  writeSecret(folder, '2', certificates.issue({ name: 'renewed', subjectAltNames: ['DNS:localhost'] }));
  await awaitUntil(async () => (await commonNameAt(port)) === 'renewed', { what: 'the renewed certificate' });
});

function writeSecret(folder: string, version: string, pair: Certificate): void {
  const data = join(folder, `..${version}`);
  mkdirSync(data);
  place(data, pair);
  copyFileSync(ca.certFile, join(data, 'ca.crt'));
  symlinkSync(`..${version}`, join(folder, '..data_tmp'));
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
}

function commonNameAt(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, servername: 'localhost', ca: ca.cert }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.end();
    });
    socket.on('error', reject);
  });
}
