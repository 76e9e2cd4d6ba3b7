import { resolve } from 'node:path';

/** What to try, for somebody who has just started development mode. */
export function developmentHints(port: number, settings: { readonly developmentFolder: string }): string {
  const url = `http://localhost:${port}`;
  return `
Development mode: ${url}, for this machine only. Users and secrets are in ${resolve(settings.developmentFolder)}.

  curl ${url}/settings
  curl ${url}/signup -d '{"email":"ada@example.com","password":"correct horse"}'
  open ${url}/dev/mail and follow the link in the mail, which is shown there and not sent, then:
  curl '${url}/token?grant_type=password' -d '{"email":"ada@example.com","password":"correct horse"}'
  curl ${url}/user -H "Authorization: Bearer $ACCESS_TOKEN"

From JavaScript, with @supabase/auth-js:  new AuthClient({ url: '${url}' })

`;
}
