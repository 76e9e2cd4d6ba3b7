import { createUser, deleteUser } from '../admin/users.ts';
import { reencrypt } from '../db/encrypted-columns.ts';
import { checkPassword } from '../passwords/passwords.ts';
import type { Command } from './arguments.ts';
import { findUser, metadataNow, operator, withContext } from './operator.ts';
import { readPassword } from './password.ts';

/** `admin createuser`: prints the id of the new user. */
export const createUserCommand: Command = async ({ environmentFiles, args: [email = ''], flags }) => {
  await withContext(environmentFiles, async (context) => {
    const password = await readPassword();
    // The admin API does not apply the policy; here an empty or short password is most likely a
    // mistake.
    await checkPassword(context, password, [email]);
    const aud = flags.aud ?? context.settings.jwtAud;
    const input = { email, password, aud, role: flags.role, emailConfirm: flags.confirm };
    return (await createUser(context, input, { actor: operator, metadata: metadataNow() })).id;
  });
};

/** `admin deleteuser`: prints the id of the user who was deleted. */
export const deleteUserCommand: Command = async ({ environmentFiles, args: [user = ''], flags }) => {
  await withContext(environmentFiles, async (context) => {
    const { id } = await findUser(context, user, flags.aud);
    await deleteUser(context, { id, soft: false }, { actor: operator, metadata: metadataNow() });
    return id;
  });
};

/** `admin reencrypt`: prints the number of changed values. */
export const reencryptCommand: Command = async ({ environmentFiles }) => {
  await withContext(environmentFiles, async (context) => {
    const counts = Object.entries(await reencrypt(context.store.encryptedColumns));
    return counts.map(([column, count]) => `${column}: ${count}`).join('\n');
  });
};
