import { type HttpConnection, openHttpConnection, requestBytes } from '../auth/http-connection.ts';

/** Settings under which users can be made fast: without a password, which takes a core 30 ms each. */
export const userSettings = { SVC_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' };

/** Signs up users and answers their access tokens. */
export async function signUpUsers(port: number, count: number): Promise<string[]> {
  const connection = await openHttpConnection(port);
  try {
    const tokens: string[] = [];
    while (tokens.length < count) tokens.push(await signUp(connection));
    return tokens;
  } finally {
    connection.close();
  }
}

async function signUp(connection: HttpConnection): Promise<string> {
  const { status, body } = await connection.ask(requestBytes('POST', '/signup', { body: {} }));
  if (status !== 200) throw new Error(`sign-up answered ${status}: ${body}`);
  // Parsed boundary: the form of a session.
  return (JSON.parse(body) as { access_token: string }).access_token;
}
