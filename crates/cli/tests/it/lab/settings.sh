# In a guest with a clock of instructions: hackbench at some settings of the scheduler, in turns,
# then a sweep. set_knob NAME VALUE: by the place that Assay names, `default` is what was there.
set_knob() {
    if [ ! -e "before-$1" ]; then
        assay knobs --json "$1" | grep -o '"place": *"[^"]*"' | cut -d '"' -f 4 >"place-$1"
        cat "$(cat "place-$1")" >"before-$1"
    fi
    value=$2
    [ "$value" != default ] || value=$(cat "before-$1")
    echo "$value" >"$(cat "place-$1")"
}
# measure ROUNDS SETTING...: a setting is NAME=VALUE,NAME=VALUE.
measure() {
    rounds=$1
    shift
    for round in $(seq "$rounds"); do
        for setting; do
            for knob in $(echo "$setting" | tr , ' '); do
                set_knob "${knob%=*}" "${knob#*=}"
            done
            echo "setting $setting"
            assay hackbench -g 4 -l 20 2>&1
        done
    done >measured
    for knob in $(echo "$1" | tr , ' '); do set_knob "${knob%=*}" default; done
}
