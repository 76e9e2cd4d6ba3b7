import t from 'tap';
import { peerIdentity } from '../../src/grpc/peer.ts';

/** A call whose peer has presented a certificate with these names, as Node spells them. */
function callOf(subjectaltname?: string): Parameters<typeof peerIdentity>[0] {
  // Only this part of the certificate is read.
  const sslPeerCertificate = { subjectaltname } as never;
  return { getAuthContext: () => (subjectaltname === undefined ? {} : { sslPeerCertificate }) };
}

t.test('the identity of a peer is the URI of its certificate, else its DNS name', async (t) => {
  t.equal(peerIdentity(callOf('DNS:a.test, URI:spiffe://x/ns/a, URI:spiffe://x/ns/b')), 'spiffe://x/ns/a');
  t.equal(peerIdentity(callOf('IP Address:127.0.0.1, DNS:a.test')), 'a.test');
  t.equal(peerIdentity(callOf('IP Address:127.0.0.1')), '');
  t.equal(peerIdentity(callOf()), '');
});

t.test('a quoted name cannot pretend to be another one', async (t) => {
  t.equal(peerIdentity(callOf('DNS:"a, URI:spiffe://x/ns/b"')), 'a, URI:spiffe://x/ns/b');
  t.equal(peerIdentity(callOf('URI:"spiffe://x/\\"a\\", DNS:b"')), 'spiffe://x/"a", DNS:b');
});
