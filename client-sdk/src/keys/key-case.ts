/** Whether keys of parsed objects become snake_case (`accessToken` → `access_token`) or stay as they came. */
export type KeyCase = 'snake' | 'preserve';
