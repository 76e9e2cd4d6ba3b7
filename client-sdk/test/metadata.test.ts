import t from 'tap';
import { checkMetadata } from '../src/metadata.ts';

const issuer = 'https://as.example';
const strict = { issuer, allowInsecure: false };

t.test('metadata of the issuer is returned unchanged', (t) => {
  const metadata = {
    issuer,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/jwks`,
    device_authorization_endpoint: null,
    op_policy_uri: 'not used, not checked',
    mtls_endpoint_aliases: { token_endpoint: 'https://mtls.as.example/token' },
  };
  t.equal(checkMetadata(metadata, strict), metadata);
  t.end();
});

t.test('metadata of another issuer is rejected, with a hint if only a slash differs', (t) => {
  t.throws(() => checkMetadata({ issuer: 'https://evil.example' }, strict), {
    name: 'IssuerMismatchError',
    message: /"https:\/\/evil.example"; expected "https:\/\/as.example"$/,
  });
  t.throws(() => checkMetadata({ issuer: `${issuer}/` }, strict), {
    message: /differ in the trailing slash/,
  });
  t.end();
});

t.test('documents other than metadata are rejected', (t) => {
  for (const document of [null, 'text', [], {}, { issuer: 5 }]) {
    t.throws(() => checkMetadata(document, strict), { name: 'DiscoveryError' });
  }
  t.end();
});

t.test('endpoints must be https, aliases too; plain http only on loopback or where allowed', (t) => {
  const insecure = [
    { token_endpoint: 'http://as.example/token' },
    { jwks_uri: 'http://as.example/jwks' },
    { mtls_endpoint_aliases: { token_endpoint: 'http://as.example/token' } },
  ];
  for (const members of insecure) {
    t.throws(() => checkMetadata({ issuer, ...members }, strict), {
      name: 'DiscoveryError',
      message: /https URL/,
    });
    t.doesNotThrow(() => checkMetadata({ issuer, ...members }, { issuer, allowInsecure: true }));
  }
  for (const url of ['/token', 'javascript:alert(1)', 5, ['https://as.example']]) {
    t.throws(() => checkMetadata({ issuer, token_endpoint: url }, { issuer, allowInsecure: true }), {
      name: 'DiscoveryError',
    });
  }
  for (const host of ['localhost:3000', '127.0.0.1', '[::1]:80']) {
    t.doesNotThrow(() => checkMetadata({ issuer, token_endpoint: `http://${host}/token` }, strict));
  }
  t.end();
});
