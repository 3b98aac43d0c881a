//! Databases, clusters, clouds and containers: verbs that can't be taken back.

use super::Danger;
use super::judge::ProgramCall;
use crate::shell::Word;
use crate::text::lists;

const SQL: &str = "\
    psql mysql mariadb sqlite3 sqlcmd clickhouse-client duckdb cockroach bq sqlplus usql mycli \
    pgcli wrangler cqlsh snowsql osql";

/// Verbs of services and databases that can't be taken back.
#[allow(
    clippy::too_many_lines,
    clippy::match_same_arms,
    reason = "a table reads better whole"
)]
pub(super) fn destroys(call: &ProgramCall<'_>, plain: &[&Word]) -> Option<Danger> {
    let name = &*call.name;
    let texts: Vec<String> = plain
        .iter()
        .take(6)
        .map(|word| word.text.to_lowercase())
        .collect();
    let first = texts.first().map_or("", |text| &**text);
    let has = |word: &str| texts.iter().any(|text| text == word);
    if lists::has(SQL, name) || matches!(name, "mongo" | "mongosh" | "redis-cli" | "influx") {
        let bodies = call
            .command
            .redirects
            .iter()
            .map(|redirect| &redirect.target);
        return call
            .arguments()
            .chain(bodies)
            .find_map(|word| is_destructive_query(&word.text));
    }
    if matches!(name, "dropdb" | "dropuser" | "mysqladmin")
        && (name != "mysqladmin" || has("drop") || has("shutdown"))
    {
        return Some(Danger::Destroy);
    }
    if matches!(name, "docker" | "podman" | "nerdctl" | "docker-compose") {
        return container(call, &texts);
    }
    let tasks = "\
        db:drop db:reset db:purge db:wipe migrate:fresh migrate:reset migrate:refresh \
        db:schema:load db:migrate:undo:all flush reset_db schema:drop flushall flushdb \
        pg:reset apps:destroy sites:delete dropdatabase";
    if call
        .arguments()
        .take(8)
        .any(|word| lists::has(tasks, &word.text.to_lowercase()))
    {
        return Some(Danger::Destroy);
    }
    match name {
        "terraform" | "tofu" | "terragrunt" | "cdk" | "cdktf" | "pulumi" | "serverless" | "sls"
        | "sst" | "eksctl" | "vagrant" => {
            let agrees = "\
                -auto-approve --auto-approve --yes -y -destroy --force --require-approval=never";
            let auto = call.any(|text| lists::has(agrees, text));
            let state = has("state") && (has("rm") || has("push") || has("mv"))
                || has("force-unlock")
                || has("taint")
                || has("workspace") && has("delete");
            (has("destroy")
                || has("remove")
                || state
                || (has("apply") || has("up") || has("deploy")) && auto)
                .then_some(Danger::Destroy)
        }
        "kubectl" | "oc" => {
            let zero = call.any(|text| text == "--replicas=0");
            let verbs = ["delete", "drain", "cordon", "taint", "evict"];
            let secret = has("get")
                && texts.iter().any(|text| text.starts_with("secret"))
                && call.has(&["-o", "-oyaml", "-ojson", "--output"]);
            if secret {
                return Some(Danger::Keys);
            }
            let remote = matches!(first, "apply" | "create")
                && call
                    .value(&["-f"])
                    .is_some_and(|file| file.starts_with("http"));
            let force = first == "replace" && call.has(&["--force"]);
            let bind = has("clusterrolebinding");
            (texts.iter().take(3).any(|text| verbs.contains(&&**text))
                || zero
                || remote
                || force
                || bind)
                .then_some(Danger::Destroy)
        }
        "helm" => matches!(first, "delete" | "uninstall" | "rollback").then_some(Danger::Destroy),
        "aws" | "gcloud" | "az" | "doctl" | "gsutil" | "heroku" | "fly" | "flyctl" | "vercel"
        | "netlify" | "firebase" | "linode-cli" | "hcloud" | "ibmcloud" | "oci" | "aliyun"
        | "tccli" | "rclone" | "mc" | "s3cmd" | "wrangler" | "railway" | "supabase"
        | "planetscale" | "pscale" => {
            let secrets = "\
                get-secret-value print-access-token get-session-token create-access-key \
                get-access-token get-parameter export-credentials print-identity-token";
            if call.any(|text| lists::has(secrets, text))
                || (name == "aws" && has("configure") && (has("get") || has("set")))
            {
                return Some(Danger::Keys);
            }
            let verb = call.any(|text| {
                let text = text.to_lowercase();
                let begins = "\
                    delete terminate remove destroy purge drop put-bucket-policy \
                    put-bucket-acl attach- detach- revoke reset rb stop- deregister \
                    put-user-policy create-user add-iam-policy-binding authorize-security";
                !text.starts_with('-')
                    && !text.contains('/')
                    && (lists::begins(begins, &text)
                        || text == "rm"
                        || text.ends_with(":destroy")
                        || text.ends_with(":delete")
                        || text.ends_with(":reset"))
            });
            (verb || call.has(&["--delete", "--delete-after"])).then_some(Danger::Destroy)
        }
        "prisma" => (has("reset") || call.has(&["--force-reset", "--accept-data-loss"]))
            .then_some(Danger::Destroy),
        "etcdctl" | "consul" | "nomad" | "rabbitmqctl" | "kafka-topics" | "kafka-topics.sh" => {
            (has("del")
                || has("delete")
                || call.has(&["--delete"])
                || has("stop_app")
                || has("reset")
                || has("stop"))
            .then_some(Danger::Destroy)
        }
        "vault" | "op" | "pass" | "bw" | "lpass" | "security" | "secret-tool" | "keyring"
        | "gopass" => {
            let reads = "\
                read get show kv find-generic-password find-internet-password dump-keychain \
                lookup list export delete item ls";
            texts
                .iter()
                .any(|text| lists::has(reads, text))
                .then_some(Danger::Keys)
        }
        "gpg" | "gpg2" => call
            .any(|text| text.starts_with("--export-secret") || text.starts_with("--delete-secret"))
            .then_some(Danger::Keys),
        "tmutil" | "vssadmin" | "wbadmin" => {
            (has("delete") || has("disable") || has("deletelocalsnapshots"))
                .then_some(Danger::Destroy)
        }
        _ => matches!(
            first,
            "destroy" | "purge" | "nuke" | "wipe" | "terminate" | "factory-reset" | "drop"
        )
        .then_some(Danger::Destroy),
    }
}

fn is_destructive_query(text: &str) -> Option<Danger> {
    let upper = text
        .get(..text.floor_char_boundary(64 * 1024))?
        .to_uppercase();
    let squeezed: Vec<&str> = upper
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|part| !part.is_empty())
        .collect();
    let pair = |a: &str, b: &str| {
        let mut pairs = squeezed.windows(2);
        pairs.any(|two| two[0] == a && lists::has(b, two[1]))
    };
    let dropped = "TABLE DATABASE SCHEMA COLLECTION INDEX USER ROLE COLUMN KEYSPACE VIEW OWNED";
    let drops = pair("DROP", dropped)
        || squeezed.first() == Some(&"TRUNCATE")
        || pair("TRUNCATE", "TABLE")
        || upper.contains("; TRUNCATE")
        || (pair("DELETE", "FROM") && !squeezed.contains(&"WHERE"))
        || (squeezed.contains(&"UPDATE")
            && squeezed.contains(&"SET")
            && !squeezed.contains(&"WHERE"))
        || pair("GRANT", "ALL")
        || pair("ALTER", "USER ROLE SYSTEM")
        || lists::within(
            "FLUSHALL FLUSHDB DROPDATABASE DELETEMANY .DROP() .REMOVE({})",
            &upper,
        )
        || upper.contains("DEBUG SEGFAULT")
        || upper.contains("CONFIG SET");
    if drops {
        return Some(Danger::Destroy);
    }
    let runners = "\
        XP_CMDSHELL .SHELL .SYSTEM LOAD_EXTENSION LO_EXPORT PG_READ_FILE LOAD_FILE WRITEFILE( \
        PG_EXECUTE";
    let runs = lists::within(runners, &upper)
        || upper.contains("PROGRAM '")
        || upper.contains("INTO OUTFILE")
        || upper.contains("\\! ")
        || upper.starts_with("\\!");
    runs.then_some(Danger::InlineCode)
}

fn container(call: &ProgramCall<'_>, texts: &[String]) -> Option<Danger> {
    let has = |word: &str| texts.iter().any(|text| text == word);
    let many = call.words.iter().any(|word| word.marks.substitution);
    let opens =
        "--privileged --pid=host --cap-add /:/ -v/:/ ~:/ /etc: /root: --userns=host --ipc=host";
    let reaches = "docker.sock =/:/ /.ssh: source=/, apparmor=unconfined seccomp=unconfined";
    let open = call.any(|text| lists::begins(opens, text) || lists::within(reaches, text));
    if open {
        return Some(Danger::Root);
    }
    let prunes = has("prune") && (has("system") || has("volume") || call.flag(&['a']));
    let removes = (has("rm") || has("rmi") || has("kill") || has("stop")) && many
        || has("volume") && has("rm")
        || has("secret") && has("rm")
        || has("swarm") && has("leave")
        || has("stack") && has("rm");
    let down = has("down") && (call.has(&["-v", "--volumes", "--rmi"]) || call.flag(&['v']));
    (prunes || removes || down).then_some(Danger::Destroy)
}
