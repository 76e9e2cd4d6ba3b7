import type { ExpectedClaims } from '../../src/id-token/claims.ts';

// The gateway checks ID tokens of other issuers by the same cases, as far as they apply.

export const now = 1_800_000_000;
export const claims = {
  iss: 'https://as.example',
  sub: 'u1',
  aud: 'app',
  iat: now - 5,
  exp: now + 300,
  nonce: 'n',
};
export const expected: ExpectedClaims = {
  issuer: 'https://as.example',
  clientId: 'app',
  now,
  toleranceSeconds: 30,
  nonce: 'n',
};

export const accepted: Record<string, [object, Partial<ExpectedClaims>]> = {
  'the plain case': [{}, {}],
  'one audience in an array': [{ aud: ['app'] }, {}],
  'several audiences with azp': [{ aud: ['api', 'app'], azp: 'app' }, {}],
  'another client of the application': [{ aud: 'mobile', azp: 'mobile' }, { otherClientIds: ['mobile'] }],
  'an expiry within the tolerance': [{ exp: now - 29 }, {}],
  'an iat within the tolerance': [{ iat: now + 30, nbf: now + 30 }, {}],
  'no nonce where none was sent': [{ nonce: undefined }, { nonce: undefined }],
  'any nonce where it is not compared': [{ nonce: 'x' }, { nonce: false }],
  'a recent authentication': [{ auth_time: now - 90 }, { maxAgeSeconds: 60 }],
  'the same subject': [{}, { subject: 'u1' }],
  "a tenant's issuer, for several tenants": [
    { iss: 'https://as.example/t-1/v2.0', tid: 't-1' },
    { issuer: 'https://as.example/{tenantid}/v2.0' },
  ],
};

export const refused: Record<string, [claim: string, object, Partial<ExpectedClaims>]> = {
  'another issuer': ['iss', { iss: 'https://as.example/' }, {}],
  "another tenant's issuer": [
    'iss',
    { iss: 'https://as.example/t-2/v2.0', tid: 't-1' },
    { issuer: 'https://as.example/{tenantid}/v2.0' },
  ],
  'no tenant where the issuer has several': [
    'iss',
    { iss: 'https://as.example/{tenantid}/v2.0' },
    { issuer: 'https://as.example/{tenantid}/v2.0' },
  ],
  'no issuer': ['iss', { iss: undefined }, {}],
  'another audience': ['aud', { aud: 'other' }, {}],
  'an audience that only contains ours': ['aud', { aud: 'app2' }, {}],
  'several audiences without azp': ['azp', { aud: ['app', 'api'] }, {}],
  'another authorized party': ['azp', { azp: 'other' }, {}],
  'another client than those of the application': ['aud', { aud: 'other' }, { otherClientIds: ['mobile'] }],
  'no subject': ['sub', { sub: undefined }, {}],
  'an empty subject': ['sub', { sub: '' }, {}],
  'another subject than before': ['sub', {}, { subject: 'u2' }],
  'an expiry in the past': ['exp', { exp: now - 30 }, {}],
  'an expiry that is text': ['exp', { exp: String(now + 300) }, {}],
  'no expiry': ['exp', { exp: undefined }, {}],
  'an issue time ahead of us': ['iat', { iat: now + 31 }, {}],
  'no issue time': ['iat', { iat: undefined }, {}],
  'not valid yet': ['nbf', { nbf: now + 31 }, {}],
  'another nonce': ['nonce', { nonce: 'other' }, {}],
  'no nonce where one was sent': ['nonce', { nonce: undefined }, {}],
  'a nonce where none was sent': ['nonce', {}, { nonce: undefined }],
  'an authentication too long ago': ['auth_time', { auth_time: now - 91 }, { maxAgeSeconds: 60 }],
  'no authentication time where one is needed': ['auth_time', {}, { maxAgeSeconds: 60 }],
  'an authentication time that is no time': ['auth_time', { auth_time: 'now' }, {}],
};
