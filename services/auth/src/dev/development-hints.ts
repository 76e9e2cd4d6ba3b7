import { resolve } from 'node:path';
import type { Settings } from '../settings/settings.ts';

const mailLimits = `Mails are limited as in production: 30 an hour, and one in 15 minutes to confirm an address, after which the answer is 429.
To try more:  SVC_RATE_LIMIT_EMAIL_SENT=1000 SVC_SMTP_MAX_FREQUENCY=1s npm start -w services/auth

`;

/** What to try, for somebody who has just started development mode. */
export function developmentHints(
  port: number,
  settings: Pick<Settings, 'developmentFolder' | 'smtpMaxFrequencyMs'>,
): string {
  const url = `http://localhost:${port}`;
  return `
Development mode: ${url}, for this machine only. Users and secrets are in ${resolve(settings.developmentFolder)}.

  curl ${url}/settings
  curl ${url}/signup -d '{"email":"ada@example.com","password":"correct horse"}'
  open ${url}/dev/mail and follow the link in the mail, which is shown there and not sent, then:
  curl '${url}/token?grant_type=password' -d '{"email":"ada@example.com","password":"correct horse"}'
  curl ${url}/user -H "Authorization: Bearer $ACCESS_TOKEN"

${settings.smtpMaxFrequencyMs === undefined ? mailLimits : ''}From JavaScript, with @supabase/auth-js:  new AuthClient({ url: '${url}' })

`;
}
