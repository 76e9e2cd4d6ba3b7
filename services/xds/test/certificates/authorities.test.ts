import { X509Certificate } from 'node:crypto';
import t from 'tap';
import {
  type Authorities,
  authorityRenewMs,
  authorityValidMs,
  issueLeaf,
  type KeyPair,
  leafRenewMs,
  leafValidMs,
  overlapMs,
  parseBundle,
  renewAuthorities,
  renewLeaf,
} from '../../src/certificates/authorities.ts';

const startMs = Date.parse('2030-01-01T00:00:00Z');
const commonName = 'tollgate/tollgate-xds';
const nothing = { signer: undefined, next: undefined, bundle: '' };
const server = { commonName: 'xds', use: 'server', dnsNames: ['xds.tollgate.svc', 'xds'] } as const;

const advance = (stored: Partial<Authorities>, nowMs: number) =>
  renewAuthorities({ ...nothing, ...stored }, { commonName, nowMs });

/** Certificates that a bundle trusts. */
const trusted = ({ bundle }: Authorities) => parseBundle(bundle).map(({ fingerprint256 }) => fingerprint256);
const fingerprint = ({ cert }: KeyPair) => new X509Certificate(cert).fingerprint256;

t.test('authority is issued once and kept until its last year', async (t) => {
  const first = await advance({}, startMs);
  const certificate = new X509Certificate(first.signer.cert);
  t.ok(certificate.ca);
  t.ok(certificate.verify(certificate.publicKey));
  t.same(trusted(first), [fingerprint(first.signer)]);
  t.same(await advance(first, startMs + authorityValidMs - authorityRenewMs), first);
});

t.test('next authority is trusted a day before it signs, the former one until it expires', async (t) => {
  const first = await advance({}, startMs);
  const dueMs = startMs + authorityValidMs - authorityRenewMs + 1;
  const both = await advance(first, dueMs);
  t.equal(both.signer.cert, first.signer.cert, 'certificates of the new one are not known everywhere yet');
  t.equal(trusted(both).length, 2);
  t.same(await advance(both, dueMs + overlapMs - 1_000), both);
  const second = await advance(both, dueMs + overlapMs);
  t.equal(second.signer.cert, both.next?.cert);
  t.equal(second.next, undefined);
  t.same(new Set(trusted(second)), new Set(trusted(both)));
  const third = await advance(second, startMs + authorityValidMs);
  t.same(trusted(third), [fingerprint(second.signer)]);
});

t.test('authority that expired without renewal is replaced', async (t) => {
  const first = await advance({}, startMs);
  const dueMs = startMs + authorityValidMs - authorityRenewMs + 1;
  const both = await advance(first, dueMs);
  const late = await advance(both, startMs + authorityValidMs);
  t.equal(late.signer.cert, both.next?.cert, 'the next one, which is trusted already');
  const later = await advance(first, startMs + authorityValidMs);
  t.same(trusted(later), [fingerprint(later.signer)]);
  t.not(later.signer.cert, first.signer.cert);
});

t.test('invalid authority is replaced', async (t) => {
  const first = await advance({}, startMs);
  const other = await advance({}, startMs);
  for (const signer of [
    { cert: 'no certificate', key: first.signer.key },
    { cert: first.signer.cert, key: other.signer.key },
    { cert: first.signer.cert, key: 'no key' },
    await issueLeaf(first.signer, { ...server, validMs: leafValidMs }, startMs),
  ]) {
    const replaced = await advance({ signer }, startMs);
    t.not(replaced.signer.cert, signer.cert);
    t.same(trusted(replaced), [fingerprint(replaced.signer)]);
  }
});

t.test('certificate is renewed a month before its end, or when its content is wrong', async (t) => {
  const { signer } = await advance({}, startMs);
  const first = await renewLeaf(undefined, server, { signer, nowMs: startMs });
  const certificate = new X509Certificate(first.cert);
  t.equal(certificate.subjectAltName, 'DNS:xds.tollgate.svc, DNS:xds');
  t.ok(certificate.verify(new X509Certificate(signer.cert).publicKey));
  t.equal(certificate.ca, false);
  const dueMs = startMs + leafValidMs - leafRenewMs;
  const at = (nowMs: number, wanted: Parameters<typeof renewLeaf>[1] = server, by = signer) =>
    renewLeaf(first, wanted, { signer: by, nowMs });
  t.equal((await at(dueMs)).cert, first.cert);
  t.not((await at(dueMs + 1)).cert, first.cert);
  t.not((await at(startMs, { ...server, dnsNames: ['other'] })).cert, first.cert);
  const { signer: other } = await advance({}, startMs);
  t.not((await at(startMs, server, other)).cert, first.cert, 'there is another authority');
});

t.test('certificate does not outlive its authority', async (t) => {
  const { signer } = await advance({}, startMs);
  const nowMs = startMs + authorityValidMs - 1_000;
  const { cert } = await renewLeaf(undefined, server, { signer, nowMs });
  t.equal(new X509Certificate(cert).validTo, new X509Certificate(signer.cert).validTo);
});
