import t from 'tap';
import { checkIdTokenClaims } from '../../src/id-token/claims.ts';
import { accepted, claims, expected, refused } from './claim-cases.ts';

for (const [name, [changes, settings]] of Object.entries(accepted)) {
  t.test(`accepts ${name}`, (t) => {
    const changed = { ...claims, ...changes };
    t.equal(checkIdTokenClaims(changed, { ...expected, ...settings }), changed);
    t.end();
  });
}

for (const [name, [claim, changes, settings]] of Object.entries(refused)) {
  t.test(`rejects ${name}`, (t) => {
    const check = () => checkIdTokenClaims({ ...claims, ...changes }, { ...expected, ...settings });
    t.throws(check, { name: 'IdTokenError', claim, kind: 'OAUTH_CLIENT_ID_TOKEN' });
    t.end();
  });
}
