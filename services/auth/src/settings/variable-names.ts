/** The variable of a setting and the other names it is read from. */
export interface VariableNames {
  readonly env: string;
  readonly aliases: readonly string[];
}

/** `SVC_<name>`, also read as `GOTRUE_<name>`, so that a deployment of that server can be taken over as it is. */
export function svc(name: string): VariableNames {
  return { env: `SVC_${name}`, aliases: [`GOTRUE_${name}`] };
}

/** Like `svc`, and also read without a prefix, as GoTrue reads a few of its variables. */
export function svcOrBare(name: string): VariableNames {
  return { env: `SVC_${name}`, aliases: [`GOTRUE_${name}`, name] };
}

/** Names without prefix, each also read under `SVC_` and `GOTRUE_`. The first is the main one. */
export function bareNames(env: string, ...others: readonly string[]): VariableNames {
  const names = [env, ...others].flatMap((name) => [name, `SVC_${name}`, `GOTRUE_${name}`]);
  return { env, aliases: names.filter((name) => name !== env) };
}

/** A variable without prefix, also read under `SVC_` and `GOTRUE_` with its own or another name. */
export function bare(name: string, ...others: readonly string[]): VariableNames {
  return {
    env: name,
    aliases: [name, ...others].flatMap((other) => [`SVC_${other}`, `GOTRUE_${other}`]),
  };
}
