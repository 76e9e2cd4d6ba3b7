import t from 'tap';
import { isLowAssurance } from '../../src/sessions/assurance.ts';
import { sessionExpiry } from '../../src/sessions/expiry.ts';

const began = new Date(1_000);
const forEver = { sessionTimeboxMs: 0, sessionInactivityTimeoutMs: 0 };

t.test('session expires at its limits, or at its own end', (t) => {
  const session = { createdAt: began, refreshedAt: undefined, notAfter: undefined };
  t.equal(sessionExpiry(session, forEver, Number.MAX_SAFE_INTEGER), undefined);
  const timebox = { ...forEver, sessionTimeboxMs: 500 };
  t.equal(sessionExpiry(session, timebox, 1_499), undefined);
  t.equal(sessionExpiry(session, timebox, 1_500), 'timebox');
  const inactivity = { ...forEver, sessionInactivityTimeoutMs: 500 };
  t.equal(sessionExpiry(session, inactivity, 1_500), 'inactivity');
  const refreshed = { ...session, refreshedAt: new Date(1_400) };
  t.equal(sessionExpiry(refreshed, inactivity, 1_500), undefined);
  t.equal(sessionExpiry(refreshed, timebox, 1_500), 'timebox', 'a refresh does not extend it');
  const ending = { ...session, notAfter: new Date(1_200) };
  t.equal(sessionExpiry(ending, forEver, 1_199), undefined);
  t.equal(sessionExpiry(ending, forEver, 1_200), 'timebox');
  t.end();
});

t.test('low assurance is limited only for users with a verified factor', (t) => {
  const low = { aal: 'aal1', createdAt: began } as const;
  const withFactor = { factors: [{ status: 'verified' }] } as const;
  const at = (nowMs: number, limitMs = 500) => ({ nowMs, limitMs });
  t.equal(isLowAssurance(low, withFactor, at(1_499)), false);
  t.equal(isLowAssurance(low, withFactor, at(1_500)), true);
  t.equal(isLowAssurance(low, withFactor, at(1_500, 0)), false);
  t.equal(isLowAssurance({ ...low, aal: 'aal2' }, withFactor, at(1_500)), false);
  t.equal(isLowAssurance(low, { factors: [{ status: 'unverified' }] }, at(1_500)), false);
  t.equal(isLowAssurance(low, { factors: [] }, at(1_500)), false);
  t.end();
});
