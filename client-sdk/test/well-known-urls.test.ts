import t from 'tap';
import { wellKnownUrls } from '../src/metadata.ts';

t.test('the well-known path goes after the issuer for OpenID Connect, before its path for RFC 8414', (t) => {
  t.same(wellKnownUrls('https://as.example', 'any'), [
    'https://as.example/.well-known/openid-configuration',
    'https://as.example/.well-known/oauth-authorization-server',
  ]);
  for (const issuer of ['https://as.example:8443/tenant/1', 'https://as.example:8443/tenant/1/']) {
    t.same(wellKnownUrls(issuer, 'openid-configuration'), [
      'https://as.example:8443/tenant/1/.well-known/openid-configuration',
    ]);
    t.same(wellKnownUrls(issuer, 'oauth-authorization-server'), [
      'https://as.example:8443/.well-known/oauth-authorization-server/tenant/1',
    ]);
  }
  t.end();
});

t.test('invalid issuers are rejected', (t) => {
  const wrong = [
    ...['', 'as.example', 'ftp://as.example', 'https://as.example?x=1', 'https://as.example#x'],
    'https://as.example/.well-known/openid-configuration',
  ];
  for (const issuer of wrong)
    t.throws(() => wellKnownUrls(issuer, 'any'), { name: 'ConfigurationError' }, issuer);
  t.end();
});
